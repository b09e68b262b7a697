"""A cap on cost: what is spent and the expected price of the next call must fit before it is sent."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_errors import BudgetExceeded

REFRESH_SECONDS = 10.0
"""After so many seconds, what other processes have spent is read from the ledger again."""


@dataclass
class Budget:
    """US dollars that may be spent by a run, and by all runs in a day; shared by all models of a run.

    The calls in flight are not counted before they are answered, so that they may pass the cap.

    Attributes:
        limit_usd: the cap, None for none. It holds for all processes that share a ledger.
        spent: by this run.
    """

    limit_usd: float | None = None
    spent: float = field(default=0.0, init=False)
    _spent_by_others: float = field(default=0.0, init=False)
    _next_reading: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    async def check(self, ledger: Ledger, price: Callable[[], float], what: str) -> None:
        """Check that a call may be sent; `price` returns what it is expected to cost, and is called if there is a cap.

        A run past midnight still counts all it has spent.

        Raises:
            BudgetExceeded: less than that is left, so nothing may be sent.
            LedgerError: the ledger cannot be used.
        """
        if self.limit_usd is None:
            return
        expected = price()
        if time.monotonic() >= self._next_reading:
            await asyncio.to_thread(self._read, ledger)
        today = max(self.spent, self._spent_by_others + self.spent)
        if today < self.limit_usd and today + expected <= self.limit_usd:
            return
        raise BudgetExceeded(
            f"{what}: the budget of ${self.limit_usd:.2f} is used up: ${today:.4f} spent today (${self.spent:.4f} by "
            f"this run), and the next call may cost ${expected:.4f}. Calls in flight are finished and may pass the "
            "budget. All paid answers are kept. Raise GRAPHRAG_BUDGET_USD and run again: only the remaining calls are "
            "paid for."
        )

    def spend(self, cost: float) -> None:
        """Charge the cost of a call."""
        with self._lock:
            self.spent += cost

    def _read(self, ledger: Ledger) -> None:
        with self._lock:
            if time.monotonic() >= self._next_reading:  # else another thread has read it meanwhile
                self._spent_by_others = ledger.spent_today() - self.spent
                self._next_reading = time.monotonic() + REFRESH_SECONDS
