"""Gleaning: further requests on the same document for missed records."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.tasks.answer_forms import RecordsForm
from graphrag_assets.llm.tasks.chat_protocol import Chat, stops_the_run
from graphrag_assets.records import Losses

Form = TypeVar("Form", bound=RecordsForm)


class Rounds(NamedTuple, Generic[Form]):
    """The answers to the rounds of a conversation, and what they lack."""

    answers: list[Form]
    losses: Losses


async def request_rounds(
    chat: Chat,
    first: ChatRequest,
    max_gleanings: int,
    asking_for_more: Callable[[Sequence[Form]], str],
) -> Rounds[Form]:
    """The answer to `first`, then up to `max_gleanings` answers with missed records.

    A gleaning repeats `first` and appends what `asking_for_more` says to the answers so far. So a provider has the
    prompt in its cache up to there, and the answers are not paid for again as part of it.

    Ends with the first round that finds nothing more. A failed gleaning keeps the answers before it, and its error is
    in the losses; only errors that stop the whole run, such as an exhausted budget, are raised.
    """
    completions = [await chat.complete(first)]
    answers: list[Form] = [completions[0].parsed]
    *before, last = first.messages
    error_of_gleaning = ""
    for _ in range(max_gleanings):
        more = Message(role=last["role"], content=f"{last['content']}\n\n{asking_for_more(answers)}")
        request = replace(first, task=f"{first.task}_continue", messages=(*before, more))
        try:
            completions.append(await chat.complete(request))
        except Exception as error:
            if stops_the_run(error):
                raise
            error_of_gleaning = f"{type(error).__name__}: {error}"
            break
        answer = completions[-1].parsed
        if answer.empty:
            break
        answers.append(answer)
    dropped = sum(completion.dropped_records for completion in completions)
    guessed = sum(completion.guessed for completion in completions)
    return Rounds(answers, Losses(error_of_gleaning, dropped, guessed))
