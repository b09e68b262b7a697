"""A signal during a query ends the program's work; no broad `except` mistakes it for a failure."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_database import IndexDatabase
from tests.query.conftest import write_index

ENDLESS = "SELECT sum(a.range * b.range) AS n FROM range(1_000_000) a, range(100_000) b"


def query_of_a_publication(folder: Path) -> Callable[[str], object]:
    return GraphRAG(write_index(folder / "graphrag-1.duckdb")).sql


def fast_query_of_a_publication(folder: Path) -> Callable[[str], object]:
    return GraphRAG(write_index(folder / "graphrag-1.duckdb")).index.reader().rows


def query_of_the_index(folder: Path) -> Callable[[str], object]:
    return IndexDatabase(folder / "working.duckdb").read


@pytest.mark.parametrize("of", [query_of_a_publication, fast_query_of_a_publication, query_of_the_index])
def test_a_signal_ends_a_query(tmp_path: Path, of: Callable[[Path], Callable[[str], object]]) -> None:
    query = of(tmp_path)
    query("SELECT 1 AS n")
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            query(ENDLESS)
    finally:
        timer.cancel()
        signal.signal(signal.SIGTERM, before)
    query("SELECT 1 AS n")
