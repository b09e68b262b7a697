"""A cap on cost: the highest price of a call is reserved before it is sent, and settled when it is answered."""

import asyncio
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_errors import BudgetExceeded

REFRESH_SECONDS = 2.0
_WAIT_SECONDS = 0.05


@dataclass
class Budget:
    """US dollars that may be spent by a run, and by all runs in a day; shared by all models of a run.

    Attributes:
        limit_usd: the cap, None for none. All processes that share a ledger keep it together.
        spent: by this run.
    """

    limit_usd: float | None = None
    spent: float = field(default=0.0, init=False)
    _n_settled: int = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    async def reserve(
        self, ledger: Ledger, price: Callable[[], tuple[float, float]], what: str, seconds: float
    ) -> "Reservation":
        """Reserve the highest price of a call that takes so many seconds at most.

        `price` returns the expected and the highest price; it is called only if there is a cap. A call that would fit
        if the calls in flight, of all processes, cost nothing waits for them: they usually cost less than is reserved
        for them, and each has a timeout. Without calls in flight, what is left is reserved if it covers the expected
        price.

        Raises:
            BudgetExceeded: less than that is left, so nothing may be sent.
            LedgerError: the ledger cannot be used.
        """
        if self.limit_usd is None:
            return Reservation(self, ledger)
        minimum, maximum = price()
        key, choose = uuid.uuid4().hex, partial(self._choose, self.limit_usd, minimum, maximum, what)
        while True:
            n_settled, began = self._n_settled, time.monotonic()
            if (amount := await ledger.reserve(key, choose, seconds)) is not None:
                return Reservation(self, ledger, key, amount if amount < maximum else None)
            while self._n_settled == n_settled and time.monotonic() - began < REFRESH_SECONDS:
                await asyncio.sleep(_WAIT_SECONDS)

    def _choose(
        self, limit: float, minimum: float, maximum: float, what: str, spent_today: float, reserved: float
    ) -> float | None:
        """The US dollars to reserve, given those of all processes; None if they may fit once calls are settled.

        A run past midnight still counts all it has spent.
        """
        free = limit - max(spent_today, self.spent)
        left = free - reserved
        if maximum <= left and left > 0:
            return maximum
        if reserved and minimum <= free and free > 0:
            return None
        if minimum <= left and left > 0:
            return left
        raise BudgetExceeded(
            f"{what}: the budget of ${limit:.2f} is used up: ${spent_today:.4f} spent today (${self.spent:.4f} by this "
            f"run), ${reserved:.4f} reserved for calls in flight, and the next call may cost ${minimum:.4f}. All paid "
            "answers are kept. Raise GRAPHRAG_BUDGET_USD and run again: only the remaining calls are paid for."
        )

    def settle(self, cost: float) -> None:
        with self._lock:
            self.spent += cost
            self._n_settled += 1


class Reservation:
    """The reserved price of one call. As a context manager it releases what was not settled.

    Attributes:
        ceiling: what the call may cost, if that is less than its highest price.
    """

    def __init__(self, budget: Budget, ledger: Ledger, key: str | None = None, ceiling: float | None = None) -> None:
        self._budget, self._ledger, self._key = budget, ledger, key
        self.ceiling = ceiling

    def settle(self, cost: float) -> None:
        """Charge the cost of the call. Further calls of `settle` add to it."""
        if cost or self._key:
            self._ledger.settle(cost, self._key)
            self._budget.settle(cost)
        self._key = None

    def transfer(self) -> "Reservation":
        """The same reservation for another owner to settle; this one then releases nothing."""
        other = Reservation(self._budget, self._ledger, self._key, self.ceiling)
        self._key = None
        return other

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(self, *_: object) -> None:
        self.settle(0.0)
