"""A table as the input: its batches, what changes their versions, and what cannot be read."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.errors import InputError
from graphrag_assets.store.input_files import hashed_name
from graphrag_assets.store.input_table import InputTable

TICKETS = """
CREATE SCHEMA raw;
CREATE TABLE raw.tickets AS
SELECT i AS id, 'Ticket ' || i AS title, 'The pump ' || i || ' leaks.' AS text, DATE '2026-01-01' + i::INT AS day,
       CASE WHEN i % 3 = 0 THEN NULL WHEN i % 3 = 1 THEN 'north' ELSE 'south/east' END AS region
FROM range(1, 31) AS n(i);
"""


class Warehouse:
    """A DuckDB file with a table of tickets."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.run(TICKETS)

    def run(self, statement: str) -> None:
        with duckdb.connect(self.file) as connection:
            connection.execute(statement)

    def table(self, query: str = "", name: str = "raw.tickets") -> InputTable:
        return InputTable(f"duckdb:///{self.file}?table={name}{query}")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "ware house.duckdb")


def rows(table: InputTable, batch: str) -> list[dict[str, object]]:
    [file] = table.files(batch)
    return [json.loads(line) for line in file.read().splitlines()]


def names(table: InputTable) -> list[str]:
    return [one.batch for one in table.list_batches() if not one.error]


def versions(table: InputTable) -> dict[str, str]:
    return {one.batch: one.files[0].version for one in table.list_batches()}


def test_rows_are_batches_by_a_column_or_by_a_hash(warehouse: Warehouse) -> None:
    by_region = warehouse.table("&partition_by=region")
    assert names(by_region) == ["none", "north", "south/east"]
    assert [row["id"] for row in rows(by_region, "none")] == [12, 15, 18, 21, 24, 27, 3, 30, 6, 9]
    assert rows(by_region, "north")[0] == {
        "id": 1,
        "title": "Ticket 1",
        "text": "The pump 1 leaks.",
        "day": "2026-01-02",
        "region": "north",
    }
    assert by_region.files("west") == []
    by_hash = warehouse.table("&partition_by=12")
    expected = {batch: {n for n in range(1, 31) if hashed_name(str(n), 12) == batch} for batch in names(by_hash)}
    assert {batch: {row["id"] for row in rows(by_hash, batch)} for batch in names(by_hash)} == expected
    assert sum(map(len, expected.values())) == 30


def test_an_edit_changes_the_version_of_its_batch_only(warehouse: Warehouse) -> None:
    before = versions(warehouse.table("&partition_by=region"))
    assert versions(warehouse.table("&partition_by=region")) == before
    warehouse.run("UPDATE raw.tickets SET text = 'The pump 1 is mended.' WHERE id = 1")
    warehouse.run("DELETE FROM raw.tickets WHERE region = 'south/east'")
    after = versions(warehouse.table("&partition_by=region"))
    assert after.keys() == {"none", "north"}
    assert {batch for batch in after if after[batch] != before[batch]} == {"north"}
    table = warehouse.table("&partition_by=region")
    assert {batch: table.files(batch)[0].version for batch in after} == after


EDITS = {
    "column t": ("id INT, t TEXT, text TEXT", "(1, 'x', 'old')", "UPDATE edited SET text = 'new'"),
    "equal rows": ("id INT, text TEXT", "(1, 'old'), (1, 'old')", "UPDATE edited SET text = 'new'"),
    "column name": ("id INT, text TEXT, note TEXT", "(1, 'old', 'x')", "ALTER TABLE edited RENAME note TO title"),
}


@pytest.mark.parametrize(("columns", "values", "edit"), EDITS.values(), ids=EDITS)
def test_every_edit_changes_the_version(warehouse: Warehouse, columns: str, values: str, edit: str) -> None:
    warehouse.run(f"CREATE TABLE edited ({columns}); INSERT INTO edited VALUES {values}")
    before = versions(warehouse.table("&partition_by=1", "edited"))
    warehouse.run(edit)
    after = versions(warehouse.table("&partition_by=1", "edited"))
    assert before["0"] != after["0"]


def test_rows_without_an_id_are_named_and_odd_names_are_read(warehouse: Warehouse) -> None:
    warehouse.run('CREATE TABLE "a{b}" (id TEXT, text TEXT, "{x}:y%" TEXT)')
    values = "('1', 'one', 'a'), ('2', 'two', ''), (NULL, 'three', 'a'), (' ', 'four', 'b'), ('5', 'five', 'x\ny')"
    warehouse.run(f'INSERT INTO "a{{b}}" VALUES {values}')
    table = warehouse.table("&partition_by={x}:y%25", "a{b}")
    assert names(table) == ["a", "none"]
    assert {batch: [row["text"] for row in rows(table, batch)] for batch in names(table)} == {
        "a": ["one"],
        "none": ["two"],
    }
    value, ids = (one for one in table.list_batches() if one.error)
    assert (value.batch, value.hint) == (r"x\x0ay", "Change the value, or choose another column with partition_by.")
    assert (ids.batch, ids.error) == ("a{b}", "2 rows have no value in the column 'id'")


def test_parquet_files_are_a_table(warehouse: Warehouse, tmp_path: Path) -> None:
    for part in (0, 1):
        warehouse.run(f"COPY (FROM raw.tickets WHERE id % 2 = {part}) TO '{tmp_path}/part{part}.parquet'")
    table = InputTable(f"duckdb:///?table={tmp_path}/part*.parquet&partition_by=region")
    assert names(table) == ["none", "north", "south/east"]
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
        names(warehouse.table(query, name))
    with pytest.raises(InputError, match="is missing"):
        names(InputTable(f"duckdb:////nowhere/x.duckdb?table={name or 'x'}"))


def test_a_file_that_another_process_writes_is_locked_and_no_batch_is_lost(warehouse: Warehouse) -> None:
    table = warehouse.table("&partition_by=region")
    [file] = table.files("north")
    hold = (
        f"import duckdb, sys; c = duckdb.connect({str(warehouse.file)!r}); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline()
        for read in (lambda: names(table), file.read):
            with pytest.raises(InputError, match=rf"is locked by .*PID {writer.pid}.* Index again when"):
                read()
        writer.communicate()
