"""A task of a chat model: its entry in the table of tasks, and the question that is asked by it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm.model_errors import GivenUp
from graphrag_assets.llm.model_options import ChatRequest, Completion, Message
from graphrag_assets.text.words import count_tokens

if TYPE_CHECKING:
    from graphrag_assets.llm.prompts import Prompts

Form = TypeVar("Form", bound=BaseModel)
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
        """Return the answer to `request`, valid for its form. Raises ModelError."""

    async def stored_answer(self, request: ChatRequest) -> Completion | None:
        """Return the answer that is paid for, or None; nothing is sent or counted."""

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
        """Return the request of a task with the values of its placeholders."""
        messages = self.prompts.render(task.name, **values)
        return ChatRequest(task.name, messages, task.form, batch=self.batch, unit=self.unit, run_id=self.run_id)


async def ask_model(model: TaskModel, task: Task[Form], **values: object) -> tuple[Form, Usage]:
    """Return the answer to a task, and what it cost. Raises ModelError."""
    completion = await model.chat.complete(model.request(task, **values))
    return completion.parsed, usage_of(completion)


def with_rules(messages: Sequence[Message], rules: Sequence[Message]) -> tuple[Message, ...]:
    """`messages` with further rules at the end of the system message: all of it is the same for each document."""
    system = [
        message["content"] for message in (*messages, *rules) if message["role"] == "system" and message["content"]
    ]
    others = (message for message in messages if message["role"] != "system")
    return (Message(role="system", content="\n\n".join(system)), *others)


def usage_of(completion: Completion) -> Usage:
    """Return the cost of an answer, without the time it took; zero from the ledger."""
    return Usage(ledger_hits=1) if completion.from_ledger else replace(completion.usage, calls=1)


def prompt_tokens(request: ChatRequest, encoding: str = "o200k_base") -> int:
    """Tokens of the messages of `request` as OpenAI bills them, without the schema of `response_format`."""
    contents = count_tokens([message["content"] for message in request.messages], encoding)
    return sum(contents) + _TOKENS_PER_MESSAGE * len(contents) + _TOKENS_PER_REQUEST
