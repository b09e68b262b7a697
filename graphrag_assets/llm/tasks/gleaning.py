"""Gleaning: further requests in the same conversation for missed records."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.answer_forms import RecordsForm
from graphrag_assets.llm.tasks.chat_protocol import Chat, stops_the_run, validated

Form = TypeVar("Form", bound=RecordsForm)


@dataclass(frozen=True, slots=True)
class Counts:
    """Losses between answers and records.

    `dropped`: number of dropped records, by reason. `failed_gleanings`: why rounds after the first failed.
    """

    dropped: Mapping[str, int] = field(default_factory=dict)
    failed_gleanings: tuple[str, ...] = ()

    def __add__(self, other: "Counts") -> "Counts":
        dropped = Counter(self.dropped) + Counter(other.dropped)
        return Counts(dict(sorted(dropped.items())), self.failed_gleanings + other.failed_gleanings)


@dataclass(frozen=True, slots=True)
class Rounds(Generic[Form]):
    """The answers of a conversation in order.

    `malformed`: number of their records with the wrong form. `failures`: why the conversation ended early.
    """

    answers: Sequence[Form]
    malformed: int = 0
    failures: tuple[str, ...] = ()

    def counts(self, dropped: Mapping[str, int]) -> Counts:
        """`dropped` with the records of the wrong form."""
        return Counts(dropped, self.failures) + Counts({"record of the wrong form": self.malformed})


async def request_rounds(
    chat: Chat, prompts: Prompts, first: ChatRequest, form: type[Form], max_gleanings: int
) -> Rounds[Form]:
    """The answer to `first`, then up to `max_gleanings` answers with missed records.

    Ends with the first round that finds nothing more. A failed gleaning keeps the answers before it; only errors
    that stop the whole run, such as a spent budget, are raised, so that the round is repeated by the next run.
    """
    request = first
    completion = await chat.complete(request)
    answers, malformed = [validated(completion, form)], completion.dropped_records
    for _ in range(max_gleanings):
        request = next_round(prompts, first.task, request, answers[-1])
        try:
            completion = await chat.complete(request)
            answer = validated(completion, form)
        except Exception as error:
            if stops_the_run(error):
                raise
            return Rounds(answers, malformed, (f"{type(error).__name__}: {error}",))
        malformed += completion.dropped_records
        if answer.empty:
            break
        answers.append(answer)
    return Rounds(answers, malformed)


def next_round(prompts: Prompts, task: str, request: ChatRequest, answer: RecordsForm) -> ChatRequest:
    """`request` with its answer and the request for missed records.

    The answer is repeated as compact JSON of its valid records: indentation costs tokens, and dropped records may be
    returned again.
    """
    said = Message(role="assistant", content=answer.model_dump_json())
    more = prompts.render(f"{task}_continue")
    return replace(request, task=f"{task}_continue", messages=(*request.messages, said, *more))
