"""Batches that are indexed at once: one pool of model calls, bounded memory, each committed when it is complete."""

import asyncio
import threading
from contextlib import closing

from graphrag_assets.assets.index_batch import work_on
from graphrag_assets.llm.event_loop import run_concurrently

SECONDS = 60.0


def test_a_batch_that_fails_does_not_stop_the_others():
    def work(batch, _):
        if batch == "b":
            raise RuntimeError("poison")
        return batch

    for at_once in (1, 3):
        outcomes = dict(work_on(["a", "b", "c"], work, at_once))
        assert str(outcomes.pop("b")) == "poison"
        assert outcomes == {"a": "a", "c": "c"}


def test_after_the_last_result_no_batch_begins_and_those_in_progress_end():
    failed = threading.Event()

    def work(batch, _):
        if batch == "over budget":
            raise RuntimeError(batch)
        assert failed.wait(SECONDS)
        return batch

    def is_last(outcome):
        failed.set()
        return isinstance(outcome, RuntimeError)

    assert {batch for batch, _ in work_on(["paid", "over budget", "waits"], work, 2, is_last)} == {
        "paid",
        "over budget",
    }
    assert {batch for batch, _ in work_on(["over budget", "waits"], work, 1, is_last)} == {"over budget"}


def test_ending_the_iteration_cancels_the_calls_in_flight():
    """As Ctrl-C does: it must not wait for the answers of other batches."""
    began = threading.Barrier(3, timeout=SECONDS)
    ended = list[str]()

    async def never(_):
        await asyncio.Event().wait()

    def work(batch, _):
        began.wait()
        if batch == "quick":
            return
        try:
            list(run_concurrently(never, [1, 2], "calls"))
        finally:
            ended.append(batch)

    with closing(work_on(["slow", "slower", "quick"], work, 3)) as outcomes:
        assert next(outcomes) == ("quick", None)
    assert sorted(ended) == ["slow", "slower"]
