"""Links a question to the graph: by the names in it, or by names and keywords that a model gives for it."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from graphrag_assets.query.ask import Ask
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
