"""A task of a chat model: its entry in the table of tasks, and the question that is asked by it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
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
_id = attrgetter("id")
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


async def ask_together(
    chat: Chat,
    requests: Sequence[ChatRequest],
    whole: Callable[[Sequence[int]], ChatRequest],
    split: Callable[[Sequence[int], Any], Mapping[int, str]],
) -> tuple[list[Any], Usage]:
    """The parsed answers to several requests, None where one is left out; those not in the ledger are asked as one.

    `whole`: the request for those at some places. `split`: of its answer that on each, by place among these, as JSON.
    """
    known = [await chat.known(one) for one in requests]
    found = [stored and stored.parsed for stored in known]
    places = [n for n, stored in enumerate(known) if stored is None]
    if not places:
        return found, Usage()
    parts = tuple(requests[n] for n in places)
    several = len(parts) > 1
    one = replace(whole(places), parts=parts, split=partial(split, places)) if several else parts[0]
    try:
        completion = await chat.complete(one)
    except StoredInParts:
        return await ask_together(chat, requests, whole, split)
    answers = split(places, completion.parsed) if several else {}
    for n, answer in answers.items():
        form: Any = parts[n].response_model
        found[places[n]] = form.model_validate_json(answer)
    if not several:
        found[places[0]] = completion.parsed
    return found, usage_of(completion)


async def ask_numbered(
    model: TaskModel,
    task: Task[Any],
    texts: Sequence[str],
    placeholder: str,
    then: Callable[[ChatRequest], ChatRequest] = lambda request: request,
    **values: object,
) -> tuple[list[Any], Usage]:
    """The record on each text, None without, by a form that is one list of records with the texts' numbers as `id`."""
    assert task.form is not None
    (name,) = task.form.model_fields

    def request(places: Sequence[int]) -> ChatRequest:
        return then(model.request(task, **{placeholder: numbered(texts[n] for n in places)}, **values))

    def split(places: Sequence[int], found: BaseModel) -> Mapping[int, str]:
        records = by_place(getattr(found, name), _id, len(places)).items()
        return {place: as_json({name: [{**one.model_dump(), "id": 1}]}) for place, one in records}

    found, usage = await ask_together(model.chat, [request([n]) for n in range(len(texts))], request, split)
    return [one and by_place(getattr(one, name), _id, 1).get(0) for one in found], usage


def numbered(texts: Iterable[str]) -> str:
    """The texts, each after its number, or, in place of a title, a line break."""
    spaced = (text if text.startswith("\n") else f" {text}" for text in texts)
    return "\n\n".join(f"[{number}]{text}" for number, text in enumerate(spaced, 1))


def by_place(records: Iterable[Record], number_of: Callable[[Record], int], count: int) -> dict[int, Record]:
    """The records about `count` numbered items, by place; a number that is unknown or occurs twice says nothing."""
    records = list(records)
    occurs = Counter(map(number_of, records))
    return {n - 1: one for one in records if occurs[n := number_of(one)] == 1 and 1 <= n <= count}


def as_json(value: object) -> str:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


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
