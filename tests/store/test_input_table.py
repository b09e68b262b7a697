"""A table as the input: its batches, what changes their versions, and what cannot be read."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa

from graphrag_assets.errors import InputError
from graphrag_assets.store import input_table
from graphrag_assets.store.input_files import hashed_name
from graphrag_assets.store.input_table import InputTable
from tests.postgres import cluster

TICKETS = """
CREATE SCHEMA raw;
CREATE TABLE raw.tickets AS
SELECT i AS id, 'Ticket ' || i AS title, 'The pump ' || i || ' leaks.' AS text, DATE '2026-01-01' + i::INT AS day,
       CASE WHEN i % 3 = 0 THEN NULL WHEN i % 3 = 1 THEN 'north' ELSE 'south/east' END AS region
FROM {numbers} AS n(i);
"""
NUMBERS = {"duckdb": "range(1, 31)", "postgresql": "generate_series(1, 30)"}


class Warehouse:
    """A database with a table of tickets. `url`: without the query."""

    def __init__(self, url: str, file: Path | None = None) -> None:
        self.url, self.file = url, file
        for statement in TICKETS.format(numbers=NUMBERS[url.partition(":")[0].partition("+")[0]]).split(";")[:-1]:
            self.run(statement)

    def run(self, statement: str) -> None:
        if self.file:
            with duckdb.connect(self.file) as connection:
                connection.execute(statement)
        else:
            with sa.create_engine(self.url).begin() as connection:
                connection.execute(sa.text(statement.replace(":", "\\:")))

    def table(self, query: str = "", name: str = "raw.tickets") -> InputTable:
        sign = "&" if "?" in self.url else "?"
        return InputTable(f"{self.url}{sign}table={name}{query}")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    file = tmp_path / "ware house.duckdb"
    return Warehouse(f"duckdb:///{file}", file)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Warehouse]:
    with cluster() as home:
        yield Warehouse(f"postgresql+psycopg://postgres@/postgres?host={home}")


def rows(table: InputTable, batch: str) -> list[dict[str, object]]:
    [file] = table.files(batch)
    return [json.loads(line) for line in file.read().splitlines()]


def versions(table: InputTable) -> dict[str, str]:
    return {one.batch: one.files[0].version for one in table.listed()}


def check_batches(warehouse: Warehouse) -> None:
    by_region = warehouse.table("&partition_by=region")
    assert by_region.batches() == ["none", "north", "south/east"]
    assert [row["id"] for row in rows(by_region, "none")] == [12, 15, 18, 21, 24, 27, 3, 30, 6, 9]
    assert rows(by_region, "north")[0] == {
        "id": 1,
        "title": "Ticket 1",
        "text": "The pump 1 leaks.",
        "day": "2026-01-02",
        "region": "north",
    }
    assert (by_region.has("north"), by_region.has("west"), list(by_region.files("west"))) == (True, False, [])
    by_hash = warehouse.table("&partition_by=12")
    expected = {batch: {n for n in range(1, 31) if hashed_name(str(n), 12) == batch} for batch in by_hash.batches()}
    assert {batch: {row["id"] for row in rows(by_hash, batch)} for batch in by_hash.batches()} == expected
    assert sum(map(len, expected.values())) == 30


def check_versions(warehouse: Warehouse) -> None:
    before = versions(warehouse.table("&partition_by=region"))
    assert versions(warehouse.table("&partition_by=region")) == before
    warehouse.run("UPDATE raw.tickets SET text = 'The pump 1 is mended.' WHERE id = 1")
    warehouse.run("DELETE FROM raw.tickets WHERE region = 'south/east'")
    after = versions(warehouse.table("&partition_by=region"))
    assert after.keys() == {"none", "north"}
    assert {batch for batch in after if after[batch] != before[batch]} == {"north"}
    table = warehouse.table("&partition_by=region")
    assert {batch: next(table.files(batch)).version for batch in after} == after


EDITS = {
    "column t": ("id INT, t TEXT, text TEXT", "(1, 'x', 'old')", "UPDATE {} SET text = 'new'"),
    "equal rows": ("id INT, text TEXT", "(1, 'old'), (1, 'old')", "UPDATE {} SET text = 'new'"),
    "column name": ("id INT, text TEXT, note TEXT", "(1, 'old', 'x')", "ALTER TABLE {} RENAME note TO title"),
}


def check_edits(warehouse: Warehouse) -> None:
    for number, (columns, values, edit) in enumerate(EDITS.values()):
        name = f"edited{number}"
        warehouse.run(f"CREATE TABLE {name} ({columns}); INSERT INTO {name} VALUES {values}")
        before = versions(warehouse.table("&partition_by=1", name))
        warehouse.run(edit.format(name))
        after = versions(warehouse.table("&partition_by=1", name))
        assert before["0"] != after["0"], edit


def check_odd_rows(warehouse: Warehouse) -> None:
    """Rows without an id are named and the others read; so are names with braces, colons and percent signs."""
    warehouse.run('CREATE TABLE "a{b}" (id TEXT, text TEXT, "{x}:y%" TEXT)')
    values = "('1', 'one', 'a'), ('2', 'two', ''), (NULL, 'three', 'a'), (' ', 'four', 'b'), ('5', 'five', 'x\ny')"
    warehouse.run(f'INSERT INTO "a{{b}}" VALUES {values}')
    table = warehouse.table("&partition_by={x}:y%25", "a{b}")
    assert table.batches() == ["a", "none"]
    assert {batch: [row["text"] for row in rows(table, batch)] for batch in table.batches()} == {
        "a": ["one"],
        "none": ["two"],
    }
    value, ids = table.unusable_names()
    assert (value.name, value.hint) == (r"x\x0ay", "Change the value, or choose another column with partition_by.")
    assert (ids.name, ids.error) == ("a{b}", "2 rows have no value in the column 'id'")


def test_rows_are_batches_by_a_column_or_by_a_hash(warehouse: Warehouse) -> None:
    check_batches(warehouse)


def test_an_edit_changes_the_version_of_its_batch_only(warehouse: Warehouse) -> None:
    check_versions(warehouse)


@pytest.mark.parametrize("check", [check_edits, check_odd_rows])
def test_odd_tables_in_duckdb(warehouse: Warehouse, check: Callable[[Warehouse], None]) -> None:
    check(warehouse)


@pytest.mark.parametrize("check", [check_batches, check_versions, check_edits, check_odd_rows])
def test_a_table_in_postgresql_is_read_like_one_in_duckdb(
    postgres: Warehouse, check: Callable[[Warehouse], None]
) -> None:
    check(postgres)


def test_values_that_python_lacks(warehouse: Warehouse, postgres: Warehouse) -> None:
    warehouse.run("CREATE TABLE odd AS SELECT 1 AS id, MAP {DATE '2026-01-02': 3} AS m, DATE 'infinity' AS d")
    assert rows(warehouse.table("&partition_by=1", "odd"), "0") == [{"id": 1, "m": {"2026-01-02": 3}, "d": "infinity"}]
    postgres.run("CREATE TABLE odd (id int, d date, far date, j json)")
    postgres.run("INSERT INTO odd VALUES (1, 'infinity', '20000-01-01', '{\"a\":\n2}')")
    row = {"id": 1, "d": "infinity", "far": "20000-01-01", "j": {"a": 2}}
    assert rows(postgres.table("&partition_by=1", "odd"), "0") == [row]


def test_a_batch_that_appears_during_a_scan_waits_for_the_next(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def then_write(*args: Any) -> list[tuple[Any, ...]]:
        result = run(*args)
        warehouse.run(f"COPY (SELECT 99 AS id, 'west' AS region) TO '{tmp_path}/west.parquet'")
        return result

    run = input_table._run_in_duckdb
    warehouse.run(f"COPY (SELECT 1 AS id, 'north' AS region) TO '{tmp_path}/north.parquet'")
    monkeypatch.setattr(input_table, "_run_in_duckdb", then_write)
    table = InputTable(f"duckdb:///?table={tmp_path}/*.parquet&partition_by=region")
    assert list(versions(table)) == ["north"]
    assert list(versions(table)) == ["north", "west"]


def test_parquet_files_are_a_table(warehouse: Warehouse, tmp_path: Path) -> None:
    for part in (0, 1):
        warehouse.run(f"COPY (FROM raw.tickets WHERE id % 2 = {part}) TO '{tmp_path}/part{part}.parquet'")
    table = InputTable(f"duckdb:///?table={tmp_path}/part*.parquet&partition_by=region")
    assert table.batches() == ["none", "north", "south/east"]
    assert len(rows(table, "north")) == 10


@pytest.mark.parametrize(
    ("query", "name", "message"),
    [
        ("", "raw.missing", "missing does not exist"),
        ("&partition_by=month", "raw.tickets", 'raw.tickets of duckdb.*"month" not found'),
        ("&partition_by=0", "raw.tickets", "from 1 to 99,999"),
        ("", "", "names no table"),
    ],
)
def test_what_cannot_be_read_is_an_error_and_not_an_empty_table(
    warehouse: Warehouse, query: str, name: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        warehouse.table(query, name).batches()
    with pytest.raises(InputError, match="is missing"):
        InputTable(f"duckdb:////nowhere/x.duckdb?table={name or 'x'}").batches()


def test_a_file_that_is_no_database_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "blocked.duckdb"
    file.write_text("no database")
    began = time.monotonic()
    with pytest.raises(InputError, match="not a valid DuckDB database"):
        InputTable(f"duckdb:///{file}?table=x").batches()
    assert time.monotonic() - began < 5


def test_a_file_that_is_being_written_is_waited_for(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(warehouse.file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout and writer.stdout.readline()  # noqa: PT018
        monkeypatch.setattr(input_table, "_LOCK_SECONDS", 0.5)
        began = time.monotonic()
        with pytest.raises(InputError, match="lock"):
            warehouse.table().batches()
        assert time.monotonic() - began > 0.5
        writer.communicate(timeout=30)
    assert len(warehouse.table().batches()) > 1
