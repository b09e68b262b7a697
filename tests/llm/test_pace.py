"""Requests start as far apart as each takes CPU time, so that they do not march in step."""

import asyncio

import pytest

from graphrag_assets.llm import LimitOptions, Limits
from graphrag_assets.llm.rate_limits import Pace


def cpu_time_of(monkeypatch: pytest.MonkeyPatch, *between_starts: float) -> None:
    """Each look at the thread's CPU time finds it later by the next of these."""
    now, steps = 0.0, iter(between_starts)

    def thread_time() -> float:
        nonlocal now
        now += next(steps)
        return now

    monkeypatch.setattr("graphrag_assets.llm.rate_limits.time.thread_time", thread_time)


def test_the_distance_is_the_cpu_time_of_a_call_and_never_long(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Pace()
    cpu_time_of(monkeypatch, *[0.002] * 60, *[3.0] * 60)
    assert pace.seconds() == 0  # nothing is known yet
    assert [pace.seconds() for _ in range(59)][-1] == pytest.approx(0.002, rel=0.01)
    assert [pace.seconds() for _ in range(60)][-1] == pytest.approx(0.005, rel=0.01)  # an import is no call


def test_requests_that_could_start_together_start_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu_time_of(monkeypatch, *[0.004] * 100)
    limits = Limits(LimitOptions(concurrency=10))

    async def starts() -> list[float]:
        loop, times = asyncio.get_running_loop(), []

        async def one() -> None:
            async with limits.slot():
                await limits.turn()
                times.append(loop.time())

        await asyncio.gather(*(one() for _ in range(40)))
        return times

    times = asyncio.run(starts())
    assert times == sorted(times)
    assert times[-1] - times[20] >= 0.004 * 19 * 0.8
