"""Concurrency, requests and tokens per minute, and the shared pause after HTTP 429."""

import asyncio
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_assets.llm.limits import Limits
from graphrag_assets.llm.model_options import LimitOptions
from tests.llm.conftest import run

MINUTE = 0.1
"""A minute of the rate limiters in these tests, in seconds."""


def start_times(options: LimitOptions, amounts: list[int]) -> list[float]:
    """Start times, in minutes of the limiter, of simultaneous requests with these numbers of tokens."""

    async def all_at_once() -> list[float]:
        limits, starts = Limits(options, MINUTE), list[float]()
        began = time.monotonic()

        async def one(tokens: int) -> None:
            await limits.turn(tokens)
            starts.append((time.monotonic() - began) / MINUTE)

        await asyncio.gather(*map(one, amounts))
        return starts

    return run(all_at_once())


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 12), max_size=20), st.integers(12, 40))
def test_tokens_are_limited_to_one_burst_and_one_limit_per_minute(amounts: list[int], limit: int) -> None:
    starts = start_times(LimitOptions(tokens_per_minute=limit), amounts)

    assert len(starts) == len(amounts)
    assert starts == sorted(starts)  # first come, first served
    for number, minutes in enumerate(starts, start=1):
        assert sum(amounts[:number]) <= limit * (1 + minutes) + 1e-3


def test_requests_start_immediately_up_to_the_limit_and_then_at_an_even_rate() -> None:
    async def started_at_once() -> int:
        limits = Limits(LimitOptions(requests_per_minute=4), 3600)
        waiting = [asyncio.ensure_future(limits.turn()) for _ in range(7)]
        for _ in range(50):
            await asyncio.sleep(0)
        started = sum(one.done() for one in waiting)
        for one in waiting:
            one.cancel()
        return started

    assert run(started_at_once()) == 4
    starts = start_times(LimitOptions(requests_per_minute=4), [0] * 7)
    assert [start >= at - 0.01 for start, at in zip(starts[4:], [0.25, 0.5, 0.75], strict=True)] == [True] * 3


def test_after_429_all_calls_wait_as_long_as_the_server_asks() -> None:
    limits = Limits(LimitOptions(backoff_seconds=0.2))

    async def work() -> float:
        async with limits.slot():
            await limits.turn()
            return time.monotonic()

    async def scenario() -> list[float]:
        began = time.monotonic()
        limits.pause(0.1)
        return [at - began for at in sorted(await asyncio.gather(*(work() for _ in range(10))))]

    starts = run(scenario())
    assert starts[0] >= 0.1
    assert starts[-1] - starts[0] >= 0.01  # not all at the same moment
