"""The waits between the attempts at a call."""

import asyncio
import random
from contextlib import suppress

import numpy as np
import pytest

from graphrag_assets.llm.limits import Limits, Trace, with_retries
from graphrag_assets.llm.model_errors import RetriesExhausted
from graphrag_assets.llm.model_options import LimitOptions, ModelOptions


def test_waits_are_random_up_to_a_limit_that_doubles_to_its_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, options = list[float](), LimitOptions(max_retries=6, backoff_seconds=1, backoff_max_seconds=16)

    async def no_sleep(seconds: float) -> None:
        waits.append(seconds)

    async def fail() -> None:
        raise TimeoutError

    async def failing_call() -> list[float]:
        waits.clear()
        with suppress(RetriesExhausted):
            await with_retries(fail, ModelOptions("openai/m"), Limits(options), Trace(), "call")
        return list(waits)

    monkeypatch.setattr(asyncio, "sleep", no_sleep)
    random.seed(7)
    found = np.array([asyncio.run(failing_call()) for _ in range(400)])
    limits = np.array([1, 2, 4, 8, 16, 16])
    assert found.shape == (400, 6)
    assert (found <= limits).all()
    assert (found.max(axis=0) > 0.95 * limits).all()
    assert (found.min(axis=0) < 0.05 * limits).all()  # full jitter: from zero
    assert np.allclose(found.mean(axis=0), limits / 2, rtol=0.1)
