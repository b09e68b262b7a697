"""Limits of requests to a model: concurrency, requests and tokens per minute, and a shared pause after HTTP 429."""

import asyncio
import random
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

from aiolimiter import AsyncLimiter

from graphrag_assets.llm.circuit_breaker import CircuitBreaker, Clock
from graphrag_assets.llm.model_options import LimitOptions

DEFAULT_LIMITS = LimitOptions()


class RateLimiter:
    """Requests and tokens per minute, as leaky buckets, and a semaphore for the concurrency; for one event loop.

    A bucket allows a burst up to its limit, then an even rate. Requests are served in order.
    """

    def __init__(self, options: LimitOptions, seconds: float = 60.0):
        self.slots = asyncio.Semaphore(options.concurrency)
        self._order = asyncio.Lock()  # aiolimiter serves small amounts first, so that large ones could starve
        self._requests = AsyncLimiter(options.requests_per_minute, seconds) if options.requests_per_minute else None
        self._tokens = AsyncLimiter(options.tokens_per_minute, seconds) if options.tokens_per_minute else None

    async def acquire(self, tokens: float = 0) -> None:
        """Wait until a request of `tokens` tokens may start. A request above the limit takes the whole bucket."""
        async with self._order:
            if self._requests:
                await self._requests.acquire()
            if self._tokens:
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))


class Limits:
    """The limits of one model, with its circuit breaker; all calls of a process share them (`Limits.of`)."""

    _of_models: ClassVar[dict[tuple[str, str | None, LimitOptions], "Limits"]] = {}

    def __init__(self, options: LimitOptions = DEFAULT_LIMITS, clock: Clock = time.monotonic):
        self.options = options
        self.breaker = CircuitBreaker(options.circuit_failures, options.circuit_seconds, clock)
        self._clock = clock
        self._limiters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, RateLimiter] = weakref.WeakKeyDictionary()
        self._paused_until = float("-inf")

    @classmethod
    def of(cls, model: str, base_url: str | None = None, options: LimitOptions = DEFAULT_LIMITS) -> "Limits":
        """The limits that all calls to this model with these options share."""
        return cls._of_models.setdefault((model, base_url, options), cls(options))

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are limited."""
        return self.options.tokens_per_minute is not None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """One of the places for concurrent calls; gives the seconds waited for it.

        Raises:
            CircuitOpen: the circuit breaker has suspended calls to the model.
        """
        began = self._clock()
        async with self._limiter().slots:
            self.breaker.admit()
            yield self._clock() - began

    async def turn(self, tokens: float = 0) -> float:
        """Wait until a request of so many tokens may start; returns the seconds waited.

        Other calls may extend a pause again and again; after the time that one call may take, the request is sent.

        Raises:
            CircuitOpen: the circuit is open, or opens meanwhile.
        """
        began = self._clock()
        async with self.breaker.waiting():
            await self._limiter().acquire(tokens)
            last = self._clock() + self.options.deadline_seconds
            while (pause := min(self._paused_until, last) - self._clock()) > 0:
                # Jitter: not all calls that waited for the pause start at the same moment.
                await asyncio.sleep(pause + random.uniform(0, self.options.backoff_seconds / 2))
        return self._clock() - began

    def pause(self, seconds: float) -> None:
        """Suspend all requests for `seconds` after HTTP 429, limited by a call's deadline."""
        seconds = min(seconds, self.options.deadline_seconds)
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def _limiter(self) -> RateLimiter:
        loop = asyncio.get_running_loop()
        if (limiter := self._limiters.get(loop)) is None:
            limiter = self._limiters[loop] = RateLimiter(self.options)
        return limiter
