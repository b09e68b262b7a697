"""What a call waits for and what ends it: identical calls in flight, places, rates, retries, failures, the budget."""

import asyncio
import itertools
import logging
import random
import threading
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from aiolimiter import AsyncLimiter

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm import provider
from graphrag_assets.llm.model_errors import (
    BudgetExceeded,
    CircuitOpen,
    ModelError,
    RefusedAnswer,
    RequestRejected,
    RetriesExhausted,
)
from graphrag_assets.llm.model_options import LimitOptions, ModelOptions

if TYPE_CHECKING:
    from graphrag_assets.llm.ledger import Ledger

_log = logging.getLogger(__name__)
T = TypeVar("T")
DEFAULT_LIMITS = LimitOptions()
_ATTEMPTS_WITHOUT_REPLY = 3
"""Number of attempts for a model that has never replied: it is probably unreachable."""
REFRESH_SECONDS = 10.0
"""After so many seconds, what other processes have spent is read from the ledger again."""


@dataclass
class Trace:
    """What one call has done so far."""

    requests: int = 0
    paid: Usage = field(default_factory=Usage)
    seconds_waiting: float = 0.0
    sending: bool = False
    abandoned: bool = False  # all its callers were canceled
    last_error: Exception | None = None  # after which the request is sent again
    began: float = field(default_factory=time.monotonic)

    @property
    def usage(self) -> Usage:
        """The usage of the call so far."""
        retries = max(0, self.requests - 1)
        return replace(self.paid, calls=min(self.requests, 1), retries=retries, seconds_waiting=self.seconds_waiting)

    @property
    def seconds(self) -> float:
        """Seconds since the call began, without those of waiting."""
        return time.monotonic() - self.began - self.seconds_waiting

    @asynccontextmanager
    async def request(self, timeout: float) -> AsyncIterator[None]:
        """Count one request, limit its time (litellm's own is a second shorter), and keep it from being canceled."""
        self.requests += 1
        self.sending = True
        try:
            async with asyncio.timeout(timeout + 1):
                yield
        except BaseException:
            self.sending = False
            raise


@dataclass
class _Flight:
    task: "asyncio.Task[Any]"
    trace: Trace
    waiters: int = 0


class SingleFlight:
    """The in-flight calls, by event loop and key: identical ones share one task.

    What has been sent is finished and stored even if all its callers are canceled, because it is paid for.
    """

    def __init__(self) -> None:
        self._by_key: dict[tuple[int, str], _Flight] = {}

    async def share(self, key: str, start: Callable[[Trace], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """Return the result of the call with this key, and whether this caller started it."""
        place = (id(asyncio.get_running_loop()), key)
        flight = self._by_key.get(place)
        first = flight is None
        if flight is None:
            trace = Trace()
            flight = self._by_key[place] = _Flight(asyncio.ensure_future(start(trace)), trace)
            flight.task.add_done_callback(lambda task: self._remove(place, task))
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task), first
        except asyncio.CancelledError as error:
            error.__cause__ = flight.trace.last_error
            raise
        finally:
            flight.waiters -= 1
            if flight.waiters == 0 and not flight.task.done():
                flight.trace.abandoned = True
                if not flight.trace.sending:
                    self._by_key.pop(place, None)
                    flight.task.cancel()

    def _remove(self, place: tuple[int, str], task: "asyncio.Task[Any]") -> None:
        if (flight := self._by_key.get(place)) and flight.task is task:
            del self._by_key[place]
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it when all callers are gone


class _Rates(NamedTuple):
    """A semaphore for the concurrency, and leaky buckets of requests and tokens; for one event loop."""

    slots: asyncio.Semaphore
    order: asyncio.Lock  # aiolimiter serves small amounts first, so that large ones could starve
    requests: AsyncLimiter | None
    tokens: AsyncLimiter | None


class Limits:
    """The limits of one model; all calls of a process share them (`Limits.of`).

    Failed calls in a row, or a failure that every call would have, suspend the calls for a while: then `slot`, `turn`
    and `check` raise CircuitOpen. `has_replied`: whether the model has ever replied.
    """

    _of_models: ClassVar[dict[tuple[str, str | None, LimitOptions], "Limits"]] = {}

    def __init__(self, options: LimitOptions = DEFAULT_LIMITS, minute: float = 60.0):
        self.options, self.minute = options, minute
        self.has_replied = False
        self._by_loop = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Rates]()
        self._paused_until = self._suspended_until = float("-inf")
        self._failed_in_a_row = 0
        self._reason = ""

    @classmethod
    def of(cls, model: str, base_url: str | None = None, options: LimitOptions = DEFAULT_LIMITS) -> "Limits":
        """Return the limits that all calls to this model with these options share."""
        return cls._of_models.setdefault((model, base_url, options), cls(options))

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """One of the places for concurrent calls; gives the seconds waited for it."""
        began = time.monotonic()
        async with self._rates().slots:
            self.check()
            yield time.monotonic() - began

    async def turn(self, tokens: float = 0) -> float:
        """Wait for the rates and for a pause, at most as long as a call may take; returns the seconds waited."""
        began = time.monotonic()
        rates = self._rates()
        async with rates.order:
            if rates.requests:
                await rates.requests.acquire()
            if rates.tokens:  # a request above the limit takes the whole bucket
                await rates.tokens.acquire(min(tokens, rates.tokens.max_rate))
        last = time.monotonic() + self.options.deadline_seconds
        while (pause := min(self._paused_until, last) - time.monotonic()) > 0:
            # Jitter: not all calls that waited for the pause start at the same moment.
            await asyncio.sleep(pause + random.uniform(0, self.options.backoff_seconds / 2))
        self.check()
        return time.monotonic() - began

    def pause(self, seconds: float) -> None:
        """Hold back all requests for `seconds` after HTTP 429, limited by a call's deadline."""
        self._paused_until = max(self._paused_until, time.monotonic() + min(seconds, self.options.deadline_seconds))

    def check(self) -> None:
        """Raise `CircuitOpen` while calls are suspended."""
        if time.monotonic() < self._suspended_until:
            raise CircuitOpen(self._reason)

    def succeeded(self) -> None:
        """Return a call has succeeded."""
        self._failed_in_a_row = 0

    def failed(self, error: str) -> None:
        """Return a call has failed after all retries."""
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= self.options.circuit_failures:
            self.suspend(f"{self._failed_in_a_row} calls in a row have failed. Last error: {error}")

    def suspend(self, reason: str) -> None:
        """Suspend calls to the model: after a while they pass again, and the next failure suspends them again."""
        if time.monotonic() >= self._suspended_until:
            self._reason, self._suspended_until = reason, time.monotonic() + self.options.circuit_seconds

    def _rates(self) -> _Rates:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            most = self.options.requests_per_minute, self.options.tokens_per_minute
            requests, tokens = (AsyncLimiter(one, self.minute) if one else None for one in most)
            slots = asyncio.Semaphore(self.options.concurrency)
            self._by_loop[loop] = _Rates(slots, asyncio.Lock(), requests, tokens)
        return self._by_loop[loop]


async def with_retries(
    send: Callable[[], Awaitable[T]],
    options: ModelOptions,
    limits: Limits,
    trace: Trace,
    what: str,
    tokens: int = 0,
    n_suspicious: int | None = None,
) -> T:
    """Return what `send` returns; after a transient failure it is called again.

    Each attempt waits for its turn in the rates. Waits after failures grow exponentially, with full jitter, in addition
    to Retry-After up to its maximum, as far as the deadline allows. The caller keeps its slot meanwhile, so a
    struggling server gets fewer requests. `what` names the call in messages; `tokens` is its expected use. After
    `n_suspicious` attempts, a failure that may lie in the request ends the call.
    """
    trace.seconds_waiting += await limits.turn(tokens)
    began, rules = time.monotonic(), limits.options
    for number in itertools.count(1):
        if trace.abandoned:
            raise asyncio.CancelledError
        try:
            result = await send()
        except ModelError:
            raise
        except Exception as error:
            failure = provider.failure(error)
        else:
            limits.has_replied = True
            return result
        _raise_if_final(failure, options, limits, what, number)
        trace.last_error = RetriesExhausted(
            f"{what}: {options.where} did not answer in {number} attempts and {time.monotonic() - began:.0f} seconds. "
            f"Last: {failure.in_words} Run again later: only missing answers are requested.",
            failure.may_be_of_request,
        )
        backoff = min(rules.backoff_seconds * 2 ** (number - 1), rules.backoff_max_seconds)
        seconds = min(failure.retry_after or 0.0, rules.retry_after_max_seconds) + random.uniform(0, backoff)
        is_suspicious = n_suspicious is not None and failure.may_be_of_request and number >= n_suspicious
        is_late = time.monotonic() - began + seconds > rules.deadline_seconds
        if number > rules.max_retries or is_suspicious or is_late:
            raise trace.last_error
        await asyncio.sleep(seconds)
        trace.seconds_waiting += seconds + await limits.turn(tokens)
    raise AssertionError


def _raise_if_final(failure: provider.Failure, options: ModelOptions, limits: Limits, what: str, number: int) -> None:
    """Raise the error of a failure that another attempt would have; one that all calls would have suspends them."""
    never_replied = not limits.has_replied and number >= _ATTEMPTS_WITHOUT_REPLY
    match failure.kind:
        case "refused":
            raise RefusedAnswer(f"{what}: the provider's content filter refused the request. {failure.in_words}")
        case "rejected":
            raise RequestRejected(f"{what}: {options.where} rejects the request. {failure.in_words}", failure.message)
        case "rate_limited":
            rules = limits.options
            seconds, most = failure.retry_after or rules.backoff_seconds, rules.retry_after_max_seconds
            if seconds > most:
                _log.warning("%s asks to wait for %.0f s; waiting for %.0f s.", options.where, seconds, most)
            limits.pause(min(seconds, most))
        case "transient" if never_replied and number == _ATTEMPTS_WITHOUT_REPLY:
            limits.failed(f"{options.where}: {failure.in_words}")
        case "fatal" | "unconnected" if failure.kind == "fatal" or never_replied:
            said = f" cannot be called: {failure.in_words} {failure.remedy}"
            reason = options.where + (said if failure.kind == "fatal" else f": {failure.in_words}")
            limits.suspend(reason)
            raise CircuitOpen(reason)


@dataclass
class Budget:
    """US dollars that all processes with a ledger may spend in a day; shared by all models of a run.

    The calls in flight are not counted before they are answered, so that they may pass the cap.
    """

    limit_usd: float | None = None  # None: no cap
    spent: float = field(default=0.0, init=False)  # by this run
    _spent_by_others: float = field(default=0.0, init=False)
    _next_reading: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    async def check(self, ledger: "Ledger", price: Callable[[], float], what: str) -> None:
        """Raise BudgetExceeded if less than `price` is left. A run past midnight still counts all it has spent."""
        if self.limit_usd is None:
            return
        expected = price()
        if time.monotonic() >= self._next_reading:
            await asyncio.to_thread(self._read, ledger)
        today = max(self.spent, self._spent_by_others + self.spent)
        if today >= self.limit_usd or today + expected > self.limit_usd:
            raise BudgetExceeded(
                f"{what}: the budget of ${self.limit_usd:.2f} is used up: ${today:.4f} spent today (${self.spent:.4f} "
                f"by this run), and the next call may cost ${expected:.4f}. Calls in flight are finished and may pass "
                "the budget. All paid answers are kept. Raise GRAPHRAG_BUDGET_USD and run again: only the remaining "
                "calls are paid for."
            )

    def spend(self, cost: float) -> None:
        """Charge the cost of a call."""
        with self._lock:
            self.spent += cost

    def _read(self, ledger: "Ledger") -> None:
        with self._lock:
            if time.monotonic() >= self._next_reading:  # else another thread has read it meanwhile
                self._spent_by_others = ledger.spent_today() - self.spent
                self._next_reading = time.monotonic() + REFRESH_SECONDS
