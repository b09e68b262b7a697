"""Batches that are indexed at once: one pool of model calls, bounded memory, each committed when it is complete."""

import asyncio
import threading
from contextlib import closing

import pytest

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import Reading, batches_at_once, index_batch, work_on
from graphrag_assets.assets.scan import scan_input
from graphrag_assets.llm.event_loop import run_concurrently
from tests.conftest import IndexFolder, default_settings
from tests.openai_server import OpenAIServer, running

SECONDS = 60.0


@pytest.fixture
def server():
    with running(latency=0.5) as server:
        yield server


def indexed(index: Index, batches: list[str]):
    """Batches that are indexed at once, with their results, as they are committed."""

    def work(batch: str, reading: Reading) -> object:
        return index_batch(index, batch, index.models(batch, "run"), "run", reading)

    return work_on(batches, work, batches_at_once(index.settings))


@pytest.fixture
def six_files(tmp_path, monkeypatch, server: OpenAIServer) -> IndexFolder:
    """An input folder with six files directly under it, each a batch, and a model that extracts."""
    default_settings(tmp_path, monkeypatch)
    for name, value in {
        "CHAT_MODEL": "openai/test-model",
        "CHAT_BASE_URL": server.url,
        "CHAT_API_KEY": "x",
        "MAX_GLEANINGS": "0",
    }.items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    folder = IndexFolder(tmp_path)
    for name in ("Ann", "Ben", "Cora", "Dan", "Eve", "Fay"):
        folder.write(f"{name.lower()}.txt", f"{name} Field met William Thomson in Valentia.")
    return folder


@pytest.mark.long
def test_batches_of_one_file_are_in_flight_together(six_files, server):
    """They were one after another: one request in flight, whatever the concurrency."""
    index = six_files.index
    due = scan_input(index).due
    failed = {batch: outcome for batch, outcome in indexed(index, due) if isinstance(outcome, Exception)}
    assert failed == {}
    assert server.most_in_flight > 3
    assert scan_input(index).due == []


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
