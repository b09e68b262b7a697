"""Single-flight: identical in-flight requests share one task.

A request that has been sent is finished and stored even if all its callers are canceled, because it is paid for.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from graphrag_assets.contracts.usage import Usage

R = TypeVar("R")


@dataclass
class Trace:
    """What one call has done so far: requests, tokens paid, seconds waited; whether all its callers were canceled.

    `last_error`: the failure after which the request is sent again.
    """

    requests: int = 0
    paid: Usage = field(default_factory=Usage)
    seconds_waiting: float = 0.0
    sending: bool = False
    abandoned: bool = False
    last_error: Exception | None = None

    @property
    def retries(self) -> int:
        """Requests after the first."""
        return max(0, self.requests - 1)

    @property
    def usage(self) -> Usage:
        """The usage of the call so far."""
        calls = 1 if self.requests else 0
        return replace(self.paid, calls=calls, retries=self.retries, seconds_waiting=self.seconds_waiting)

    def seconds_since(self, began: float) -> float:
        """Seconds since `began` (`time.monotonic`), without those of waiting."""
        return time.monotonic() - began - self.seconds_waiting

    def check(self) -> None:
        """Raise `CancelledError` if all callers were canceled, so that nothing more is sent."""
        if self.abandoned:
            raise asyncio.CancelledError

    @asynccontextmanager
    async def request(self, timeout: float) -> AsyncIterator[None]:
        """Count one request and limit its time. From here on the call is not canceled: its answer is to be stored.

        Unless the request fails; then the call may be canceled while it waits for the next one.

        Raises:
            TimeoutError: after `timeout` seconds, and one more for litellm to apply its own timeout first.
        """
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


@dataclass
class SingleFlight:
    """The in-flight calls, by event loop and key."""

    _by_key: dict[tuple[int, str], _Flight] = field(default_factory=dict)

    async def share(self, key: str, start: Callable[[Trace], Coroutine[Any, Any, R]]) -> tuple[R, bool]:
        """The result of the call with this key, and whether this caller started it.

        If all callers are canceled, a call that has been sent is finished; one that still waits is canceled.
        """
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

    async def drain(self) -> None:
        """Wait until the calls of this event loop are finished."""
        loop = id(asyncio.get_running_loop())
        tasks = [flight.task for (where, _), flight in self._by_key.items() if where == loop]
        await asyncio.gather(*tasks, return_exceptions=True)

    def _remove(self, place: tuple[int, str], task: "asyncio.Task[Any]") -> None:
        if (flight := self._by_key.get(place)) and flight.task is task:
            del self._by_key[place]
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it when all callers are gone
