"""What is searched for: a question without its conversation, and the names and keywords that it is linked by."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from graphrag_assets.query.ask import Ask
from graphrag_assets.query.history import ConversationHistory
from graphrag_assets.query.option_types import Options
from graphrag_assets.query.retrieval import Question


@dataclass(frozen=True, kw_only=True)
class LinkingOptions(Options):
    """How a question is linked to the graph.

    Args:
        linking: names: by the names and words of the question. model: a request to the model gives the names that the
            question means, and keywords for particulars and for themes; without a model, as names.
    """

    linking: Annotated[Literal["names", "model"], Field(description="'names' or 'model'")] = "names"


async def link_question(ask: Ask[Any], text: str, question: Question) -> Question:
    """Return what to search for instead of `question`: with `linking="model"`, the names and keywords of `text`, too.

    Names and low-level keywords are searched for in titles, aliases and descriptions of entities and in passages;
    high-level keywords in reports. If the request fails, the question is searched for as it is.
    """
    if ask.options.linking != "model":
        return question
    lost = "the names and keywords of the question"
    found = await ask.optional("link", lost, ask.models.answerer.alink(text, ask.form))
    if found is None:
        return question
    reports = Question("\n".join([question.text, *found.high_level])) if found.high_level else None
    return replace(question, text="\n".join([question.text, *found.names, *found.low_level]), of_reports=reports)


async def rewrite_question(ask: Ask[Any]) -> None:
    """Make a question understood without its conversation, by one request; nothing else needs the conversation then.

    Where the request fails or leaves the question as it is, the conversation stays a part of the search.
    """
    options = ask.options
    turns = ConversationHistory.of(options.history).section(
        options.conversation_history_max_turns, user_turns_only=False, budget=options.max_context_tokens // 2
    )
    if turns is None:
        return
    form, lost = replace(ask.form, history=turns.text), "the question without its conversation"
    said = await ask.optional("rewrite", lost, ask.models.answerer.arewrite(ask.text, (), 0, form))
    if said and said.question != ask.text:
        ask.text, ask.options = said.question, replace(options, history=None)
        ask.prepare()
