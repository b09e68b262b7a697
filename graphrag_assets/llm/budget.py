"""A cap on cost: the estimated cost of a call is reserved before it is sent, and settled when it is answered."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from graphrag_assets.llm.model_errors import BudgetExceeded
from graphrag_assets.llm.question_budget import QuestionBudget

REFRESH_SECONDS = 2.0
_WAIT_SECONDS = 0.05


@dataclass
class Budget:
    """US dollars that may be spent by a run, and by all runs in a day; shared by all models of a run.

    Attributes:
        limit_usd: the cap, None for none.
        spent_today: reads from the ledger what all processes have spent today; read again every few seconds, in a
            thread, so that a ledger that does not reply stops no other call and no deadline.
    """

    limit_usd: float | None = None
    spent_today: Callable[[], float] = lambda: 0.0
    spent: float = field(default=0.0, init=False)
    reserved: float = field(default=0.0, init=False)
    _recorded: float = field(default=0.0, init=False)  # today's cost in the ledger when last read
    _since: float = field(default=0.0, init=False)  # settled by this run since then
    _read_at: float = field(default=float("-inf"), init=False)
    _reading: "asyncio.Task[None] | None" = field(default=None, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @property
    def today(self) -> float:
        """US dollars that all processes have spent today, as far as is known since the last reservation."""
        return self._recorded + self._since

    @property
    def left(self) -> float | None:
        """US dollars that may still be spent; None without a cap. A run past midnight still counts all it has spent."""
        return None if self.limit_usd is None else self.limit_usd - max(self.today, self.spent) - self.reserved

    async def reserve(self, estimate: Callable[[], float], what: str) -> "Reservation":
        """Reserve the estimated cost of a call (estimated only if there is a cap).

        A call that would fit if the calls in flight cost nothing waits for them: they usually cost less than is
        reserved for them. Each of them has a timeout, so the wait ends.

        Raises:
            BudgetExceeded: less than that is left, so nothing may be sent.
        """
        if self.limit_usd is None:
            return Reservation(self, 0.0)
        amount = estimate()
        await self._refresh()
        while not self._try(amount, what):
            await asyncio.sleep(_WAIT_SECONDS)
            await self._refresh()
        return Reservation(self, amount)

    async def _refresh(self) -> None:
        """Read the ledger if the last reading is old; callers of one event loop share a reading."""
        if time.monotonic() - self._read_at <= REFRESH_SECONDS:
            return
        task = self._reading
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._reading = asyncio.ensure_future(self._read())
        await asyncio.shield(task)  # a canceled caller does not cancel it for the others

    async def _read(self) -> None:
        before = self._since
        recorded = await asyncio.to_thread(self.spent_today)
        with self._lock:  # what was settled meanwhile may not be in the ledger yet
            self._recorded, self._since, self._read_at = recorded, self._since - before, time.monotonic()

    def _try(self, amount: float, what: str) -> bool:
        """Reserve `amount`; False if it may fit once calls in flight are settled."""
        assert self.limit_usd is not None
        with self._lock:
            left = self.left or 0.0
            if self.reserved and 0 < amount <= left + self.reserved and amount > left:
                return False
            if amount > left or left <= 0:
                raise BudgetExceeded(
                    f"{what}: the budget of ${self.limit_usd:.2f} is used up: ${self.today:.4f} spent today "
                    f"(${self.spent:.4f} by this run), ${self.reserved:.4f} reserved for calls in flight, and the "
                    f"next call may cost ${amount:.4f}. All paid answers are kept. Raise GRAPHRAG_BUDGET_USD and "
                    "run again: only the remaining calls are paid for."
                )
            self.reserved += amount
        return True


class Reservation:
    """The reserved cost of one call. As a context manager it releases what was not settled.

    `question`: the budget of the question that the call belongs to, of which `held` is reserved as well.
    """

    def __init__(
        self, budget: Budget, amount: float, question: QuestionBudget | None = None, held: float = 0.0
    ) -> None:
        self._budget, self._amount, self.question, self.held = budget, amount, question, held

    def settle(self, cost: float) -> None:
        """Charge the cost of the call. Further calls of `settle` add to it."""
        with self._budget._lock:
            self._budget.spent += cost
            self._budget._since += cost
            self._budget.reserved -= self._amount
            self._amount = 0.0
        if self.question:
            self.question.settle(self.held, cost)
            self.held = 0.0

    def transfer(self) -> "Reservation":
        """The same reservation for another owner to settle; this one then releases nothing."""
        other = Reservation(self._budget, self._amount, self.question, self.held)
        self._amount = self.held = 0.0
        return other

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(self, *_: object) -> None:
        self.settle(0.0)
