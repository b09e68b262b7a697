"""One writer at a time: others wait and say for whom, and a killed one leaves nothing behind."""

import logging
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from graphrag_assets.store.index_database import IndexDatabase

SPAWN = multiprocessing.get_context("spawn")
SECONDS = 60


@pytest.fixture
def working(tmp_path: Path) -> IndexDatabase:
    return IndexDatabase(tmp_path / "index" / "working.duckdb")


def hold(path: Path, held, release) -> None:
    with IndexDatabase(path).writing("knowledge_graph", "run-1"):
        held.set()
        release.wait(SECONDS)


@pytest.fixture
def writer(working):
    """A process that holds the writer lock, and the event that ends it."""
    held, release = SPAWN.Event(), SPAWN.Event()
    process = SPAWN.Process(target=hold, args=(working.path, held, release))
    process.start()
    assert held.wait(SECONDS)
    yield process, release
    if process.is_alive():  # an event that a killed process waits for cannot be set
        release.set()
    process.join(SECONDS)


class Told(logging.Handler):
    """Calls `act` at the first line."""

    def __init__(self, act) -> None:
        super().__init__()
        self.lines, self._act = list[str](), act

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self._act()


@pytest.mark.parametrize("end", ["committed", "killed"])
def test_a_run_waits_for_the_writer_and_says_for_whom(working, writer, end):
    process, release = writer
    told = Told(release.set if end == "committed" else lambda: os.kill(process.pid, signal.SIGKILL))
    logger = logging.getLogger("graphrag_assets.store.index_files")
    logger.addHandler(told)
    logger.setLevel(logging.INFO)
    try:
        with working.writing("index_batch of 'a'", "run-2"):
            pass
    finally:
        logger.removeHandler(told)
    assert told.lines == [
        f"index_batch of 'a' waits for knowledge_graph of run run-1 (process {process.pid}), which writes the index"
    ]
