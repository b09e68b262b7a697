"""Gleaning: further requests on the same document for missed records."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.tasks.answer_forms import RecordsForm
from graphrag_assets.llm.tasks.chat_protocol import Chat, ask, stops_the_run

Form = TypeVar("Form", bound=RecordsForm)


async def request_rounds(
    chat: Chat,
    first: ChatRequest,
    form: type[Form],
    max_gleanings: int,
    asking_for_more: Callable[[Sequence[Form]], str],
) -> list[Form]:
    """The answer to `first`, then up to `max_gleanings` answers with missed records.

    A gleaning repeats `first` and appends what `asking_for_more` says to the answers so far. So a provider has the
    prompt in its cache up to there, and the answers are not paid for again as part of it.

    Ends with the first round that finds nothing more. A failed gleaning keeps the answers before it; only errors that
    stop the whole run, such as an exhausted budget, are raised, so that the round is repeated by the next run.
    """
    answers = [await ask(chat, first, form)]
    *before, last = first.messages
    for _ in range(max_gleanings):
        more = Message(role=last["role"], content=f"{last['content']}\n\n{asking_for_more(answers)}")
        try:
            answer = await ask(chat, replace(first, task=f"{first.task}_continue", messages=(*before, more)), form)
        except Exception as error:
            if stops_the_run(error):
                raise
            break
        if answer.empty:
            break
        answers.append(answer)
    return answers
