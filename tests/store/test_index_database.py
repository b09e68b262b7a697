import multiprocessing
import os
import signal
from pathlib import Path

import duckdb
import polars as pl
import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.store import schema
from graphrag_assets.store.index_database import (
    IndexDatabase,
    assign_numbers,
    numbered,
    replace_table,
)


@pytest.fixture
def working(tmp_path: Path) -> IndexDatabase:
    return IndexDatabase(tmp_path / "index" / "working.duckdb")


def add(connection: duckdb.DuckDBPyConnection, *ids: str) -> None:
    connection.execute("INSERT INTO summarized BY NAME SELECT unnest($ids) AS id", {"ids": list(ids)})


@pytest.mark.parametrize("title", ["O'Brien", "100 %", "x'; DROP TABLE entities; --", "船 🚢", 'a "b"', "\\n $1 {}"])
def test_any_name_is_stored_as_it_is(working, title):
    row = {"document_id": None, "alias_key": title, "title_key": title, "rule": "decision"}
    frame = pl.DataFrame([row], schema_overrides={"document_id": pl.String})
    with working.transaction() as connection:
        replace_table(connection, schema.ENTITY_ALIASES, frame)
    assert working.read("SELECT alias_key FROM entity_aliases").item() == title
    assert working.read("SELECT count(*) FROM entities").item() == 0


def test_numbers_stay_with_their_ids_and_are_never_reused(working):
    def number(*ids: str) -> dict[str, int]:
        frame = pl.DataFrame({"id": list(ids)}, schema={"id": pl.String})
        with working.transaction() as connection:
            assign_numbers(connection, "entities", frame)
            return dict(numbered(connection, "entities", frame).iter_rows())

    assert number("b", "a") == {"b": 1, "a": 0}
    assert number("c") == {"c": 2}
    assert number("b", "d") == {"b": 1, "d": 3}


def test_new_id_takes_over_the_number_of_deleted_content(working):
    def number(**contents: str | None) -> dict[str, int]:
        frame = pl.DataFrame(
            {"id": list(contents), "content": list(contents.values())}, {"id": pl.String, "content": pl.String}
        )
        with working.transaction() as connection:
            assign_numbers(connection, "covariates", frame)
            return dict(numbered(connection, "covariates", frame).select("id", "human_readable_id").iter_rows())

    assert number(a="same", b="other", c="same") == {"a": 0, "b": 1, "c": 2}
    assert number(b="other", c="same", d="same", e="new") == {"b": 1, "c": 2, "d": 0, "e": 3}  # a became d
    assert number(d="same", e="new", f="same", g="same") == {"d": 0, "e": 3, "f": 2, "g": 4}  # c became f
    assert number(e="new", a="same", h="other") == {"e": 3, "a": 0, "h": 1}  # and a came back, b as h
    assert number(i=None, j=None) == {"i": 5, "j": 6}  # without content everything is itself


def _commit_batches(path: Path, name: str, commits: int) -> None:
    working = IndexDatabase(path)
    for i in range(commits):
        with working.transaction() as connection:
            add(connection, f"{name}-{i}")


def test_writers_in_many_processes_queue_and_lose_nothing(working):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_commit_batches, args=(working.path, f"w{n}", 5)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert working.read("SELECT count(*), count(DISTINCT id) FROM summarized").row(0) == (15, 15)


def _die_in_transaction(path: Path) -> None:
    with IndexDatabase(path).transaction() as connection:
        connection.execute("DELETE FROM summarized")
        add(connection, "new")
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_killed_in_a_transaction_leaves_the_old_state_and_no_lock(working):
    with working.transaction() as connection:
        add(connection, "old")
    victim = multiprocessing.get_context("spawn").Process(target=_die_in_transaction, args=(working.path,))
    victim.start()
    victim.join()
    assert victim.exitcode == -signal.SIGKILL
    assert working.read("SELECT id FROM summarized").rows() == [("old",)]


def _hold_open(path: Path, opened, release) -> None:
    connection = duckdb.connect(str(path), read_only=True)
    opened.set()
    release.wait(60)
    connection.close()


def test_file_open_in_a_shell_is_an_error_with_a_remedy(working):
    working.read("SELECT 1")
    context = multiprocessing.get_context("spawn")
    opened, release = context.Event(), context.Event()
    shell = context.Process(target=_hold_open, args=(working.path, opened, release))
    shell.start()
    assert opened.wait(60)
    try:
        with pytest.raises(StoreError, match="close it there"):
            working.read("SELECT 1")
    finally:
        release.set()
        shell.join()
