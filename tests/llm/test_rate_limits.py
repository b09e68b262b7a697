"""Rates, the common pause after 429, and the circuit: in simulated time where time matters."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.llm.model_errors import CircuitOpen
from graphrag_assets.llm.model_options import LimitOptions
from graphrag_assets.llm.rate_limits import Circuit, Limits, Rate
from tests.llm.conftest import run


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=60), st.integers(12, 40))
def test_a_rate_is_never_more_than_its_limit_in_any_sixty_seconds(steps: list[tuple[int, int]], limit: int) -> None:
    clock = Clock()
    rate = Rate(limit, clock=clock)
    starts = []
    for pause, units in steps:
        clock.now += pause
        starts.append((clock.now + rate.reserve(units), units))

    assert starts == sorted(starts, key=lambda start: start[0])  # first come, first served
    for end, _ in starts:
        assert sum(units for start, units in starts if end - 60 < start <= end) <= limit + 1e-6


def test_a_rate_lets_as_much_through_as_it_may() -> None:
    clock = Clock()
    rate = Rate(3, clock=clock)
    assert [rate.reserve(1) for _ in range(7)] == [0, 0, 0, 60, 60, 60, 120]


def test_more_than_the_limit_passes_alone_and_corrections_count() -> None:
    clock = Clock()
    rate = Rate(100, clock=clock)
    assert [rate.reserve(500), rate.reserve(50)] == [0, 60]
    clock.now = 200
    assert rate.reserve(90) == 0
    rate.correct(-60)  # it used 30 only
    assert rate.reserve(70) == 0
    assert rate.reserve(1) == 60


def test_no_more_than_the_limit_run_at_once_and_all_callers_share_it() -> None:
    options = LimitOptions(concurrency=3)
    assert Limits.of("m", None, options) is Limits.of("m", None, options)
    assert Limits.of("m", None, options) is not Limits.of("other", None, options)
    limits, running, most = Limits(options), 0, 0

    async def work() -> None:
        nonlocal running, most
        async with limits.slot():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

    async def all_at_once() -> None:
        await asyncio.gather(*(work() for _ in range(20)))

    run(all_at_once())
    assert most == 3
    run(all_at_once())  # another event loop
    assert most == 3


def test_after_429_everybody_waits_as_long_as_the_server_asks_and_then_starts_apart() -> None:
    limits = Limits(LimitOptions(backoff_seconds=1.0))

    async def work() -> float:
        async with limits.slot():
            await limits.turn()
            return time.monotonic()

    async def story() -> list[float]:
        began = time.monotonic()
        assert limits.limited(0, retry_after=0.1) == 0.1
        return [at - began for at in sorted(await asyncio.gather(*(work() for _ in range(3))))]

    first, second, third = run(story())
    assert first >= 0.1
    assert second - first >= 0.045  # a twentieth of the backoff apart
    assert third - first >= 0.09


def test_the_pace_slows_once_per_round_of_429_and_quickens_with_answers() -> None:
    clock = Clock()
    limits = Limits(LimitOptions(backoff_seconds=1.0), clock)
    for _ in range(25):  # all in flight are told so at once
        limits.limited(0, 2.0)
    assert limits._spacing == 0.05
    clock.now = 3.0
    limits.limited(0, 2.0)
    assert limits._spacing == 0.1
    for _ in range(60):
        limits.answered()
    assert limits._spacing == 0.0


def test_backoff_doubles_within_its_bounds_with_full_jitter() -> None:
    limits = Limits(LimitOptions(backoff_seconds=1.0, backoff_max_seconds=8.0))
    for retry, top in [(0, 1), (1, 2), (3, 8), (30, 8), (5000, 8)]:
        waits = [limits.backoff(retry) for _ in range(200)]
        assert 0 <= min(waits) < 0.2 * top
        assert 0.8 * top < max(waits) <= top


def test_an_opening_circuit_wakes_all_who_wait() -> None:
    circuit = Circuit(3, 60)

    async def story() -> list[BaseException]:
        waiting = asyncio.gather(*(circuit.sleep(3600) for _ in range(5)), return_exceptions=True)
        await asyncio.sleep(0)
        circuit.open("wrong key")
        return await asyncio.wait_for(waiting, 60)

    assert [str(error) for error in run(story())] == ["wrong key"] * 5


def test_failures_in_a_row_open_the_circuit_and_a_success_between_them_does_not() -> None:
    circuit = Circuit(3, 60)
    for _ in range(5):
        circuit.gave_up("HTTP 500")
        circuit.gave_up("HTTP 500")
        circuit.succeeded()
    circuit.check()
    for _ in range(3):
        circuit.gave_up("HTTP 500")
    with pytest.raises(CircuitOpen, match=r"3 calls in a row have failed\. Last error: HTTP 500"):
        circuit.check()


def test_before_any_success_calls_that_fail_again_and_again_open_it_early() -> None:
    circuit = Circuit(3, 60)
    for call in range(10):
        circuit.attempt_failed(call, "refused")
        circuit.attempt_failed(call, "refused")
    circuit.check()
    for call in range(3):
        circuit.attempt_failed(call, "refused")
    with pytest.raises(CircuitOpen, match="No call has succeeded"):
        circuit.check()

    established = Circuit(3, 60)
    established.answered()
    for call in range(100):
        established.attempt_failed(call % 10, "refused")  # an outage: patience
    established.check()


def test_after_a_while_a_stopped_model_is_tried_again() -> None:
    clock = Clock()
    circuit = Circuit(3, 60, clock)
    circuit.open("wrong key")
    clock.now = 59
    with pytest.raises(CircuitOpen):
        circuit.check()
    clock.now = 60
    circuit.check()
