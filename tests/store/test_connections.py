"""Files that are opened in a DuckDB instance in memory."""

import multiprocessing
import time
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.store import connections
from graphrag_assets.store.connections import Limits, idle_in_memory, in_memory, opened
from graphrag_assets.store.working import WorkingDatabase

OPEN = "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND path IS NOT NULL"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "one.duckdb", tmp_path / "two.duckdb"]
    for file in made:
        duckdb.connect(str(file)).close()
    return made


def test_a_file_opened_in_another_leaves_that_one_in_use(files: list[Path]) -> None:
    with in_memory(Limits().beside(files[0]), one_thread=True) as connection, opened(connection, files[0], "first"):
        with opened(connection, files[1], "second"):
            assert connection.sql("SELECT current_database()").fetchall() == [("second",)]
        assert connection.sql("SELECT current_database()").fetchall() == [("first",)]
        assert connection.sql(OPEN).fetchall() == [("first",)]


def test_a_file_is_closed_before_the_exception_leaves(files: list[Path]) -> None:
    """The lock of the working database is released next: a process that waits for it opens the file."""
    with in_memory(Limits().beside(files[0]), one_thread=True) as connection:
        with pytest.raises(ZeroDivisionError), opened(connection, files[0], "working"):
            raise ZeroDivisionError
        assert connection.sql(OPEN).fetchall() == []
        duckdb.connect(str(files[0])).close()


def test_a_forked_process_reads_with_a_database_of_its_own(tmp_path: Path) -> None:
    working = WorkingDatabase(tmp_path / "working.duckdb")
    assert working.read("SELECT 42 AS n")["n"].to_list() == [42]
    process = multiprocessing.get_context("fork").Process(target=working.read, args=("SELECT 42",))
    process.start()
    process.join(30)
    assert process.exitcode == 0


def test_what_a_long_statement_took_is_given_back(tmp_path: Path) -> None:
    def databases(seconds: float) -> set[int]:
        with idle_in_memory(Limits().beside(tmp_path), one_thread=True) as connection:
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS one AS SELECT 1")
            time.sleep(seconds)
        return {id(database) for database in connections._idle.values()}

    assert len(databases(0)) == 1
    assert databases(0.1) == set()
