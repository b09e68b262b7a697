"""A circuit breaker: stops the calls to a model when all of them would fail."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal

from graphrag_assets.llm.model_errors import CircuitOpen

Clock = Callable[[], float]


class CircuitBreaker:
    """Closed, open or half-open (M. Nygard, Release It!, 2007).

    closed: calls pass; `failures` failed calls in a row open the circuit, a fatal failure opens it at once.
    open: every call raises `CircuitOpen`, including waiting ones.
    half-open: after `seconds` one trial call passes; its success closes the circuit, its failure opens it again.

    `has_replied`: whether the model has ever replied.
    """

    def __init__(self, failures: int, seconds: float, clock: Clock = time.monotonic):
        self._failures, self._seconds, self._clock = failures, seconds, clock
        self.state: Literal["closed", "open", "half-open"] = "closed"
        self.has_replied = False
        self._failed_in_a_row = 0
        self._reason = ""
        self._since = 0.0  # when it opened, or let its last trial pass
        self._waits: set[tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = set()

    def admit(self) -> None:
        """Let one call pass.

        Raises:
            CircuitOpen: the circuit is open, or a trial call is in progress.
        """
        if self.state == "closed":
            return
        if self._clock() - self._since < self._seconds:
            raise CircuitOpen(self._reason)
        self.state, self._since = "half-open", self._clock()

    def succeeded(self) -> None:
        """A call has succeeded."""
        self.state, self._failed_in_a_row = "closed", 0

    def failed(self, error: str) -> None:
        """A call has failed after all retries."""
        self._failed_in_a_row += 1
        if self.state == "half-open" or self._failed_in_a_row >= self._failures:
            self.trip(f"{self._failed_in_a_row} calls in a row have failed. Last error: {error}")

    def trip(self, reason: str) -> None:
        """Open the circuit and end all waits."""
        if self.state != "open":
            self.state, self._reason, self._since = "open", reason, self._clock()
        for loop, timeout in list(self._waits):
            loop.call_soon_threadsafe(self._end, loop, timeout)

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """A context for waits, which end when the circuit opens.

        Raises:
            CircuitOpen: the circuit is open, or opens meanwhile.
        """
        if self.state == "open":
            raise CircuitOpen(self._reason)
        timeout = asyncio.timeout(None)
        wait = (asyncio.get_running_loop(), timeout)
        try:
            async with timeout:
                self._waits.add(wait)
                yield
        except TimeoutError:
            if timeout.expired():
                raise CircuitOpen(self._reason) from None
            raise
        finally:
            self._waits.discard(wait)

    def _end(self, loop: asyncio.AbstractEventLoop, timeout: asyncio.Timeout) -> None:
        if (loop, timeout) in self._waits:
            timeout.reschedule(loop.time())
