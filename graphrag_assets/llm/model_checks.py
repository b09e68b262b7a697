"""Asks each model one tiny question, so that a wrong key, name or address is noticed before anything is paid for."""

import functools
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graphrag_assets.contracts.usage import UsageMeter
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.limits import SingleFlight, Trace
from graphrag_assets.llm.model_errors import BudgetExceeded, InvalidAnswer, LedgerError, ModelError, ModelUnusable
from graphrag_assets.llm.model_options import ChatRequest, Message, ModelOptions
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Text

TASK = "model_check"
_QUESTION = (
    Message(role="system", content="This is a test of the connection. Reply in the requested form."),
    Message(role="user", content="Answer with the word ready."),
)
log = logging.getLogger(__name__)


class ModelCheck(AnswerForm):
    """The answer to the question."""

    answer: Text


@dataclass(frozen=True)
class Check:
    """The question to one model.

    Attributes:
        tasks: what the model does.
        ask: sends the question and returns what the reply shows; raises ModelError.
        usage: counts what it used.
    """

    tasks: tuple[str, ...]
    options: ModelOptions
    ask: Callable[[], Coroutine[Any, Any, str]]
    usage: UsageMeter


def chat_check(
    chat: ChatModel, tasks: Sequence[str], batch: str | None = None, run_id: str | None = None, n_tokens: int = 0
) -> Check:
    """The question to a chat model, with a schema as its tasks have; `chat` must not take answers from the ledger.

    `n_tokens`: of a text before the question, which shows whether the server cuts prompts of this length.
    """
    system, question = _QUESTION
    question = Message(role="user", content="filler " * n_tokens + question["content"])
    request = ChatRequest(TASK, (system, question), ModelCheck, batch=batch, run_id=run_id)

    async def ask() -> str:
        await chat.complete(request)
        cuts = ", cuts long prompts" if chat.cuts_prompts else ""
        return f"answers by {chat.structured_mode}{cuts}"

    return Check(tuple(tasks), chat.options, ask, chat.usage)


def embedding_check(model: EmbeddingModel, batch: str | None = None, run_id: str | None = None) -> Check:
    """The text for an embedding model."""

    async def ask() -> str:
        return f"{await model.check(TASK, batch, run_id)} dimensions"

    return Check(("embeddings",), model.options, ask, model.usage)


class Preflight:
    """Checks the models of a run before its first paid chat request.

    A run with a single model needs no check: its first call shows the same. Models that have passed are not asked again
    in this process; the next process asks again, because a server that was there yesterday may not be there today, and
    the question costs less than any other request.
    """

    _passed: ClassVar[set[ModelOptions]] = set()
    _single_flight: ClassVar[SingleFlight] = SingleFlight()

    def __init__(self, checks: Callable[[], Sequence[Check]]):
        self._checks = functools.cache(checks)

    async def __call__(self, _: object = None) -> None:
        """Ask the models that have not been asked; embedding models first, because their answers cost least.

        Raises:
            ModelUnusable: a model cannot be used. Nothing was paid for but the questions to the others.
            BudgetExceeded, LedgerError: the question cannot be asked.
        """
        checks = self._checks()
        for check in checks if len(checks) > 1 else ():
            if check.options not in self._passed:
                await self._single_flight.share(str(hash(check.options)), functools.partial(self._ask, check))

    async def _ask(self, check: Check, _: Trace) -> None:
        try:
            await check.ask()
        except InvalidAnswer as error:  # the model replies: its answers to the tasks are judged one by one
            log.warning("%s", error)
        except (BudgetExceeded, LedgerError):
            raise
        except ModelError as error:
            raise ModelUnusable(f"{error} The run stopped before anything was paid for.") from None
        self._passed.add(check.options)
