"""Files that are opened in a DuckDB instance in memory."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.store.connections import DEFAULT_MEMORY, in_memory, opened

OPEN = "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND path IS NOT NULL"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "one.duckdb", tmp_path / "two.duckdb"]
    for file in made:
        duckdb.connect(str(file)).close()
    return made


def test_a_file_opened_in_another_leaves_that_one_in_use(files: list[Path]) -> None:
    with in_memory(files[0], DEFAULT_MEMORY) as connection, opened(connection, files[0], "first"):
        with opened(connection, files[1], "second"):
            assert connection.sql("SELECT current_database()").fetchall() == [("second",)]
        assert connection.sql("SELECT current_database()").fetchall() == [("first",)]
        assert connection.sql(OPEN).fetchall() == [("first",)]


def test_a_file_is_closed_before_the_exception_leaves(files: list[Path]) -> None:
    """The lock of the working database is released next: a process that waits for it opens the file."""
    with in_memory(files[0], DEFAULT_MEMORY) as connection:
        with pytest.raises(ZeroDivisionError), opened(connection, files[0], "working"):
            raise ZeroDivisionError
        assert connection.sql(OPEN).fetchall() == []
        duckdb.connect(str(files[0])).close()


def test_threads_read_a_file_at_once(files: list[Path]) -> None:
    """Also after the first read, which leaves a database for the next."""
    both = threading.Barrier(2, timeout=30)

    def read(_: int) -> str:
        with in_memory(files[0], DEFAULT_MEMORY) as connection, opened(connection, files[0], "first"):
            both.wait()
            return connection.sql("SELECT current_database()").fetchall()[0][0]

    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            assert list(pool.map(read, range(2))) == ["first", "first"]
