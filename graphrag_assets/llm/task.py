"""A task of a chat model: its entry in the table of tasks, and the question that is asked by it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from graphrag_assets.contracts.answering import Usage
from graphrag_assets.llm.model_errors import GivenUp, StoredInParts
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.text.words import count_tokens

if TYPE_CHECKING:
    from graphrag_assets.llm.prompts import Prompts

Form = TypeVar("Form", bound=BaseModel)
Record = TypeVar("Record")
SYSTEM, USER = frozenset({"system"}), frozenset({"user"})
_TOKENS_PER_MESSAGE = 4  # role and separators, as OpenAI counts them
_TOKENS_PER_REQUEST = 3  # the start of the answer


@dataclass(frozen=True)
class Task(Generic[Form]):
    """What a chat model is asked: a template, the messages that it makes, and the form of the answer."""

    name: str  # of the template, and in the ledger
    form: type[Form] | None = None  # of the answer; None: a text
    data: Mapping[str, str] = field(default_factory=dict)  # placeholders for text of documents, and their fences
    required: str = ""  # other placeholders that a template must use
    optional: str = ""  # those that it may use
    profile: str = ""  # the parts of the prompt profile that are added
    blocks: frozenset[str] = SYSTEM | USER

    @property
    def needed(self) -> frozenset[str]:
        """The placeholders that a template must use."""
        return frozenset(self.required.split()) | self.data.keys()

    @property
    def all(self) -> frozenset[str]:
        """The placeholders that it may use."""
        return self.needed | frozenset(self.optional.split())


class Chat(Protocol):
    """A chat model; see `ChatModel`."""

    async def complete(self, request: ChatRequest) -> Completion:
        """The answer to `request`, valid for its form. Raises ModelError."""

    async def known(self, request: ChatRequest) -> Completion | None:
        """The answer that is paid for, or None; nothing is sent or counted."""

    async def given_up(self, request: ChatRequest) -> GivenUp | None:
        """Why the request is not sent again, because two runs got no valid answer; None if it may be."""


@dataclass(frozen=True)
class TaskModel:
    """A chat model with its prompts; batch, row and run are recorded in the ledger with each answer."""

    chat: Chat
    prompts: "Prompts"
    batch: str | None = None
    unit: str | None = None
    run_id: str | None = None

    def request(self, task: Task[Any], **values: object) -> ChatRequest:
        """The request of a task with the values of its placeholders."""
        messages = self.prompts.render(task.name, **values)
        return ChatRequest(task.name, messages, task.form, batch=self.batch, unit=self.unit, run_id=self.run_id)


async def ask_model(model: TaskModel, task: Task[Form], **values: object) -> tuple[Form, Usage]:
    """The answer to a task, and what it cost. Raises ModelError."""
    completion = await model.chat.complete(model.request(task, **values))
    return completion.parsed, usage_of(completion)


async def ask_numbered(
    model: TaskModel,
    task: Task[Any],
    texts: Sequence[str],
    placeholder: str,
    one_each: bool = True,
    **values: object,
) -> tuple[list[list[Any]], Usage]:
    """The records on each text, by a form that is one list of records with the texts' numbers as `id`.

    The ledger has an answer for each text by itself; those that it lacks are asked for in one request. With `one_each`,
    no record on a text, or more than one, is no answer.
    """
    assert task.form is not None
    (name,) = task.form.model_fields

    def request(places: Sequence[int]) -> ChatRequest:
        return model.request(task, **{placeholder: numbered(texts[n] for n in places)}, **values)

    def split(answer: Any) -> dict[int, BaseModel]:
        on_each = [_records(answer, name, n) for n in range(1, len(places) + 1)]
        as_first = ([one.model_copy(update={"id": 1}) for one in records] for records in on_each)
        answers = {n: answer.model_construct(**{name: records}) for n, records in enumerate(as_first)}
        return {n: one for n, one in answers.items() if not one_each or len(on_each[n]) == 1}

    requests = [request([n]) for n in range(len(texts))]
    known = [await model.chat.known(one) for one in requests]
    answers = {n: stored.parsed for n, stored in enumerate(known) if stored}
    places, usage = [n for n in range(len(texts)) if n not in answers], Usage()
    if places:
        parts = tuple(requests[n] for n in places)
        together = replace(request(places), parts=parts, split=split) if len(parts) > 1 else parts[0]
        try:
            completion = await model.chat.complete(together)
        except StoredInParts:
            return await ask_numbered(model, task, texts, placeholder, one_each, **values)
        answers |= {places[n]: answer for n, answer in split(completion.parsed).items()}
        usage = usage_of(completion)
    return [_records(answers.get(n), name, 1) for n in range(len(texts))], usage


def _records(answer: BaseModel | None, name: str, number: int) -> list[Any]:
    return [one for one in getattr(answer, name, ()) if one.id == number]


def numbered(texts: Iterable[str]) -> str:
    """The texts, each after its number, or, in place of a title, a line break."""
    spaced = (text if text.startswith("\n") else f" {text}" for text in texts)
    return "\n\n".join(f"[{number}]{text}" for number, text in enumerate(spaced, 1))


def by_place(records: Iterable[Record], number_of: Callable[[Record], int], count: int) -> dict[int, Record]:
    """The records about `count` numbered items, by place; a number that is unknown or occurs twice says nothing."""
    records = list(records)
    occurs = Counter(map(number_of, records))
    return {n - 1: one for one in records if occurs[n := number_of(one)] == 1 and 1 <= n <= count}


def usage_of(completion: Completion) -> Usage:
    """The cost of an answer, without the time it took; zero from the ledger."""
    used = completion.usage
    if completion.from_ledger:
        return Usage()
    return Usage(1, used.prompt_tokens, used.completion_tokens, used.cost_usd)


def prompt_tokens(request: ChatRequest, encoding: str = "o200k_base") -> int:
    """Tokens of the messages of `request` as OpenAI bills them, without the schema of `response_format`."""
    contents = count_tokens([message["content"] for message in request.messages], encoding)
    return sum(contents) + _TOKENS_PER_MESSAGE * len(contents) + _TOKENS_PER_REQUEST
