"""The interface between tasks and chat models: one request, one answer."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel

from graphrag_assets.contracts.answering import Usage
from graphrag_assets.llm.model_errors import BudgetExceeded, CircuitOpen, GivenUp, LedgerError
from graphrag_assets.llm.model_options import ChatRequest, Completion, Message
from graphrag_assets.text.words import count_tokens

Form = TypeVar("Form", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a request, recorded in the ledger: batch, row (of the text unit, entity, …) and run."""

    batch: str | None = None
    unit: str | None = None
    run_id: str | None = None

    def request(
        self, task: str, messages: tuple[Message, ...], response_model: type[BaseModel] | None = None
    ) -> ChatRequest:
        """A request of this origin."""
        return ChatRequest(task, messages, response_model, batch=self.batch, unit=self.unit, run_id=self.run_id)


NOWHERE = Origin()


class Chat(Protocol):
    """A chat model."""

    async def complete(self, request: ChatRequest) -> Completion:
        """The answer to `request`, valid for its response model.

        Raises:
            Exception: there is none after all retries, or the request may not be sent.
        """

    async def known(self, request: ChatRequest) -> Completion | None:
        """The answer that is paid for, or None; nothing is sent or counted."""

    async def given_up(self, request: ChatRequest) -> GivenUp | None:
        """Why the request is not sent again, because two runs got no valid answer; None if it may be."""


_TOKENS_PER_MESSAGE = 4  # role and separators, as OpenAI counts them
_TOKENS_PER_REQUEST = 3  # the start of the answer


def prompt_tokens(request: ChatRequest, encoding: str = "o200k_base") -> int:
    """Tokens of the messages of `request` as OpenAI bills them, without the schema of `response_format`."""
    return _billed(count_tokens([message["content"] for message in request.messages], encoding))


def max_prompt_tokens(request: ChatRequest) -> int:
    """An upper bound of `prompt_tokens` without tokenizing: a text has at most as many tokens as bytes in UTF-8."""
    return _billed([len(message["content"].encode()) for message in request.messages])


def _billed(contents: list[int]) -> int:
    return sum(contents) + _TOKENS_PER_MESSAGE * len(contents) + _TOKENS_PER_REQUEST


async def ask(chat: Chat, request: ChatRequest, form: type[Form]) -> Form:
    """The answer to `request`, whose response model is `form`."""
    answer: Form = (await chat.complete(request)).parsed
    return answer


def stops_the_run(error: Exception) -> bool:
    """Whether `error` concerns the whole run (budget spent, circuit open, ledger unusable), not one answer."""
    return isinstance(error, BudgetExceeded | CircuitOpen | LedgerError)


def usage_of(completion: Completion) -> Usage:
    """The cost of an answer, without the time it took; zero from the ledger."""
    if completion.from_ledger:
        return Usage()
    used = completion.usage
    return Usage(1, used.prompt_tokens, used.completion_tokens, used.cost_usd)
