"""How much may be sent at once: concurrency, rates, a common pause after 429, and a circuit that stops all.

One `Limits` is shared by all calls of a process to one model (`Limits.of`). Nothing polls: every wait is one
timer, and an opening circuit ends all of them.
"""

import asyncio
import random
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

from graphrag_assets.llm.model_errors import CircuitOpen
from graphrag_assets.llm.model_options import LimitOptions

DEFAULT_LIMITS = LimitOptions()
Clock = Callable[[], float]


class Rate:
    """At most `limit` units within any `seconds`: each reservation is told when it may start, in order."""

    def __init__(self, limit: int, seconds: float = 60.0, clock: Clock = time.monotonic):
        self._limit, self._seconds, self._clock = limit, seconds, clock
        self._booked: deque[tuple[float, float]] = deque()  # (start, units) within the window of the last start
        self._sum = 0.0
        self._last = float("-inf")

    def reserve(self, units: float) -> float:
        """Book `units`; returns the seconds to wait. More than the limit passes alone, in an empty window."""
        start = max(self._clock(), self._last)
        while self._booked and self._booked[0][0] <= start - self._seconds:
            self._sum -= self._booked.popleft()[1]
        while self._booked and self._sum + units > self._limit:
            booked, passed = self._booked.popleft()
            self._sum -= passed
            start = max(start, booked + self._seconds)
        self._book(start, units)
        return max(0.0, start - self._clock())

    def correct(self, units: float) -> None:
        """Book the difference between what was reserved and what was used (may be negative)."""
        self._book(max(self._clock(), self._last), units)

    def _book(self, start: float, units: float) -> None:
        self._booked.append((start, units))
        self._sum += units
        self._last = start


class Pace:
    """How far apart requests start, so that they do not march in step: by the CPU time that one takes.

    An event loop works in turns on answers that come together. Their successors would be sent together after the
    work of all, come together again, and so wait in every round for each other's work: at 25 × 200 ms and 2 ms of
    work per call that is a fifth of the throughput.
    """

    _MOST_SECONDS = 0.005

    def __init__(self) -> None:
        self._mean = 0.0
        self._last: float | None = None

    def seconds(self) -> float:
        """CPU time of this thread from one start to the next, as a moving mean."""
        now = time.thread_time()
        used = 0.0 if self._last is None else min(max(now - self._last, 0.0), self._MOST_SECONDS)
        self._last = now
        self._mean += (used - self._mean) / 8
        return self._mean


class Circuit:
    """Stops all calls when all of them would fail.

    It opens at once for what cannot heal (`open`), and when `failures` different calls have failed in a row:
    for good, or, as long as nothing was ever answered, three times each.
    """

    _ATTEMPTS_WITHOUT_SUCCESS = 3

    def __init__(self, failures: int, seconds: float, clock: Clock = time.monotonic):
        self._failures, self._seconds, self._clock = failures, seconds, clock
        self._reason: str | None = None
        self._opened = 0.0
        self._given_up = 0
        self._attempts: dict[int, int] = {}
        self.ever_answered = False
        self._sleepers: set[asyncio.Future[None]] = set()

    def check(self) -> None:
        """Raise `CircuitOpen` while the circuit is open."""
        if self._reason is None:
            return
        if self._clock() - self._opened >= self._seconds:  # try again: the cause may have been mended
            self._reason = None
            self._given_up = 0
            self._attempts.clear()
            return
        raise CircuitOpen(self._reason)

    def open(self, reason: str) -> None:
        """Stop all calls, those that wait included."""
        if self._reason is None:
            self._reason, self._opened = reason, self._clock()
        for sleeper in list(self._sleepers):
            sleeper.get_loop().call_soon_threadsafe(_wake, sleeper)

    def answered(self) -> None:
        """The server answered, whatever the answer is worth."""
        self.ever_answered = True
        self._attempts.clear()

    def succeeded(self) -> None:
        """A call has its valid answer."""
        self._given_up = 0

    def attempt_failed(self, call: int, error: str, enough: int | None = None) -> None:
        """One attempt of a call failed and will be retried. `enough`: fewer calls than `failures` that stop all."""
        if self.ever_answered:
            return
        self._attempts[call] = self._attempts.get(call, 0) + 1
        hopeless = sum(n >= self._ATTEMPTS_WITHOUT_SUCCESS for n in self._attempts.values())
        if hopeless >= min(self._failures, enough or self._failures):
            self.open(f"No call has succeeded; tried several times: {hopeless}. Last error: {error}")

    def gave_up(self, error: str) -> None:
        """A call failed for good."""
        self._given_up += 1
        if self._given_up >= self._failures:
            self.open(f"{self._given_up} calls in a row have failed. Last error: {error}")

    async def sleep(self, seconds: float) -> None:
        """Wait; `CircuitOpen` ends it."""
        self.check()
        if seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _wake, sleeper)
        self._sleepers.add(sleeper)
        try:
            await sleeper
        finally:
            timer.cancel()
            self._sleepers.discard(sleeper)
        self.check()


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class Limits:
    """The limits of one model; see `LimitOptions`."""

    _of_models: ClassVar[dict[tuple[str, str | None, LimitOptions], "Limits"]] = {}

    def __init__(self, options: LimitOptions = DEFAULT_LIMITS, clock: Clock = time.monotonic):
        self.options = options
        self.circuit = Circuit(options.circuit_failures, options.circuit_seconds, clock)
        self.under_way = 0  # calls that have a slot
        self._clock = clock
        self._requests = Rate(options.requests_per_minute, clock=clock) if options.requests_per_minute else None
        self._tokens = Rate(options.tokens_per_minute, clock=clock) if options.tokens_per_minute else None
        self._slots: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            weakref.WeakKeyDictionary()
        )
        self._paused_until = float("-inf")
        self._spacing = 0.0  # seconds between the starts of two requests, learnt from answers 429
        self._pace = Pace()
        self._next_start = float("-inf")

    @classmethod
    def of(cls, model: str, base_url: str | None = None, options: LimitOptions = DEFAULT_LIMITS) -> "Limits":
        """The limits that all callers in this process share for a model at an address."""
        return cls._of_models.setdefault((model, base_url, options), cls(options))

    @property
    def counts_tokens(self) -> bool:
        """Whether reservations need the number of tokens."""
        return self._tokens is not None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """A place to send requests from, one after the other; gives the seconds waited for it.

        Raises:
            CircuitOpen: the model is not called any more.
        """
        began = self._clock()
        self.circuit.check()
        loop = asyncio.get_running_loop()
        slots = self._slots.get(loop)
        if slots is None:
            slots = self._slots[loop] = asyncio.Semaphore(self.options.concurrency)
        async with slots:
            self.under_way += 1
            try:
                yield self._clock() - began
            finally:
                self.under_way -= 1

    async def turn(self, tokens: int = 0) -> float:
        """Wait until a request of so many tokens may be sent; returns the seconds waited.

        Raises:
            CircuitOpen: the model is not called any more.
        """
        began = self._clock()
        waits = [rate.reserve(n) for rate, n in ((self._requests, 1), (self._tokens, tokens)) if rate]
        await self.circuit.sleep(max(waits, default=0.0))
        while (pause := self._paused_until - self._clock()) > 0:
            await self.circuit.sleep(pause)
        start = max(self._clock(), self._next_start)
        self._next_start = start + max(self._spacing, self._pace.seconds())
        await self.circuit.sleep(start - self._clock())
        return self._clock() - began

    def used(self, reserved_tokens: int, tokens: int) -> None:
        """A request that had reserved so many tokens used this many."""
        if self._tokens:
            self._tokens.correct(tokens - reserved_tokens)

    def answered(self) -> None:
        """A request was answered: after a 429 the pace quickens again."""
        self._spacing = self._spacing * 0.9 if self._spacing > 0.001 else 0.0
        self.circuit.answered()

    def limited(self, retry: int, retry_after: float | None) -> float:
        """The server said 429 to a call's attempt number `retry`: all calls pause, then start further apart.

        Returns the seconds that this call waits, at least what the server asked for.
        """
        wait = retry_after if retry_after is not None else self.backoff(retry)
        now = self._clock()
        if now >= self._paused_until:  # a new round of 429, not one more answer of the same
            step = max(2 * self._spacing, self.options.backoff_seconds / 20)
            self._spacing = min(step, self.options.backoff_max_seconds)
        self._paused_until = max(self._paused_until, now + wait)
        return wait

    def backoff(self, retry: int) -> float:
        """Seconds before the retry with this number (from 0): exponential, full jitter."""
        top = min(self.options.backoff_max_seconds, self.options.backoff_seconds * 2 ** min(retry, 30))
        return random.uniform(0, top)
