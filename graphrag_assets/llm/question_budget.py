"""The ceiling on what one question may cost, for all models that it asks.

It holds in the task that asks the question, and in all tasks and threads that it starts. Concurrent questions have
ceilings of their own.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from graphrag_assets.llm.model_errors import QuestionBudgetExceeded

BEFORE_ANSWER, BEFORE_READING = 0.75, 0.5
"""Shares of the ceiling that may be spent before the answer is written, and before relevant texts are read for it."""
_WAIT_SECONDS = 0.02


_share: ContextVar[float] = ContextVar("share_of_question_budget", default=BEFORE_ANSWER)


@dataclass
class QuestionBudget:
    """US dollars that a question may cost.

    `staged`: a share is kept for later stages of the search. It is not needed where the whole is estimated to fit.
    """

    max_usd: float
    staged: bool = True
    spent: float = 0.0
    reserved: float = 0.0

    @property
    def usable(self) -> float:
        """US dollars that may be spent up to this stage of the search."""
        return self.max_usd * (_share.get() if self.staged else 1.0)

    @property
    def left(self) -> float:
        """US dollars that may be reserved now."""
        return self.usable - self.spent - self.reserved

    async def reserve(self, minimum: float, maximum: float, what: str) -> float:
        """Reserve up to `maximum` US dollars for a request; it waits for requests in flight if these leave too little.

        Raises:
            QuestionBudgetExceeded: less than `minimum` is left.
        """
        while minimum > self.left:
            if not self.reserved or minimum > self.left + self.reserved:
                kept = self.max_usd - self.usable
                raise QuestionBudgetExceeded(
                    f"{what}: max_usd of ${self.max_usd:.4f} does not cover it: ${self.spent:.4f} is spent, "
                    f"${kept:.4f} is kept for what follows, and the request may cost ${minimum:.4f}. Raise max_usd."
                )
            await asyncio.sleep(_WAIT_SECONDS)
        amount = min(maximum, self.left)
        self.reserved += amount
        return amount

    def settle(self, reserved: float, cost: float) -> None:
        """Charge the cost of a request for which so much was reserved."""
        self.spent += cost
        self.reserved -= reserved


_current: ContextVar[QuestionBudget | None] = ContextVar("question_budget", default=None)


def current_question() -> QuestionBudget | None:
    """The budget of the question that this task belongs to; None without a ceiling."""
    return _current.get()


def flight_key(key: str) -> str:
    """The key of a request in flight: questions with a ceiling share their requests with no other."""
    question = _current.get()
    return key if question is None else f"{key} {id(question)}"


@contextmanager
def spending(share: float) -> Iterator[None]:
    """Within the block, up to this share of the question's ceiling may be spent."""
    token = _share.set(share)
    try:
        yield
    finally:
        _share.reset(token)


def use_all() -> None:
    """Keep nothing of the question's ceiling for later stages."""
    if question := _current.get():
        question.staged = False


def limit_question(max_usd: float) -> None:
    """Limit what the requests of this task, and of those that it starts from now on, may cost together."""
    _current.set(QuestionBudget(max_usd))
