"""Calls under way, shared by all who ask the same, and brought home when nobody waits any more."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graphrag_assets.llm.model_options import TokenUsage

R = TypeVar("R")


@dataclass
class Trace:
    """What a call goes through, filled in while it goes."""

    requests: int = 0
    paid: TokenUsage = field(default_factory=TokenUsage)
    seconds_waiting: float = 0.0
    sending: bool = False
    abandoned: bool = False

    @property
    def retries(self) -> int:
        """Requests after the first."""
        return max(0, self.requests - 1)

    def check(self) -> None:
        """End the call here when nobody waits for it: nothing more is sent."""
        if self.abandoned:
            raise asyncio.CancelledError


@dataclass
class _Flight:
    task: "asyncio.Task[Any]"
    trace: Trace
    waiters: int = 0


@dataclass
class Flights:
    """The calls under way, by event loop and key."""

    _by_key: dict[tuple[int, str], _Flight] = field(default_factory=dict)

    async def share(self, key: str, start: Callable[[Trace], Coroutine[Any, Any, R]]) -> tuple[R, bool]:
        """The result of the call with this key, and whether this caller began it.

        When its callers are cancelled, a call that has been sent is finished (it is paid for) and stored; one
        that still waits for its turn is given up.
        """
        place = (id(asyncio.get_running_loop()), key)
        flight = self._by_key.get(place)
        first = flight is None
        if flight is None:
            trace = Trace()
            flight = self._by_key[place] = _Flight(asyncio.ensure_future(start(trace)), trace)
            flight.task.add_done_callback(lambda done: self._landed(place, done))
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task), first
        finally:
            flight.waiters -= 1
            if flight.waiters == 0 and not flight.task.done():
                flight.trace.abandoned = True
                if not flight.trace.sending:
                    self._by_key.pop(place, None)
                    flight.task.cancel()

    async def land(self) -> None:
        """Wait until the calls of this event loop are over."""
        loop = id(asyncio.get_running_loop())
        tasks = [flight.task for (where, _), flight in self._by_key.items() if where == loop]
        await asyncio.gather(*tasks, return_exceptions=True)

    def _landed(self, place: tuple[int, str], task: "asyncio.Task[Any]") -> None:
        if (flight := self._by_key.get(place)) and flight.task is task:
            del self._by_key[place]
        if not task.cancelled():
            task.exception()  # seen, also when nobody waits for it any more
