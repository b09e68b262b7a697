"""A signal during a query ends the program's work; no broad `except` mistakes it for a failure."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_database import IndexDatabase
from tests.query.conftest import write_index

ENDLESS = "SELECT sum(a.range * b.range) AS n FROM range(1_000_000) a, range(100_000) b"


class Terminated(BaseException):
    """As Dagster raises when a run is terminated."""


@pytest.fixture
def terminate() -> Iterator[threading.Timer]:
    def handle(*_: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, handle)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    yield timer
    timer.cancel()
    signal.signal(signal.SIGTERM, before)


def guarded(work: Callable[[], Any]) -> str:
    """As in code that continues after a failed batch."""
    try:
        work()
    except Exception as error:
        return f"swallowed {error!r}"
    return "done"


def run(working: IndexDatabase) -> None:
    with working.connect() as connection:
        connection.execute(ENDLESS).fetchall()


def test_a_signal_ends_a_query_of_a_publication(tmp_path: Path, terminate: threading.Timer) -> None:
    rag = GraphRAG(write_index(tmp_path / "graphrag-1.duckdb"))
    terminate.start()
    with pytest.raises(KeyboardInterrupt):
        guarded(lambda: rag.index.reader().rows(ENDLESS))
    assert rag.sql("SELECT 1 AS n").item() == 1


def test_a_signal_ends_a_query_of_the_working_database(tmp_path: Path, terminate: threading.Timer) -> None:
    working = IndexDatabase(tmp_path / "working.duckdb")
    working.read("SELECT 1")
    terminate.start()
    with pytest.raises(KeyboardInterrupt):
        guarded(lambda: run(working))
    assert working.read("SELECT 1 AS n").item() == 1
