"""Names in a query, and other databases, do not reach the inside of a macro."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.store.macros import write_macros
from graphrag_assets.store.schema import PUBLISHED

_ALIASES = """
a b c d e f g h m n p q r s t u v w x documents entities relationships covariates communities community_reports text_units
claims called numbers met named cited passages"""
_COLUMNS = """
title id name entity community text human_readable_id number document place kind hops claims relationship nodes key since
day max_hops text_unit claim"""
ALIASES, COLUMNS = _ALIASES.split(), _COLUMNS.split()

# By macro: its arguments with their types.
CALLS: dict[str, tuple[tuple[str, str], ...]] = {
    "entities_called": (("'the big ship'", "VARCHAR"),),
    "neighbors": (("'great eastern'", "VARCHAR"), ("2", "INT")),
    "path_between": (("'Samuel Morse'", "VARCHAR"), ("'Daniel Gooch'", "VARCHAR"), ("4", "INT")),
    "facts_as_of": (("'1866-12-31'", "VARCHAR"),),
    "history_of": (("'great eastern'", "VARCHAR"),),
    "report_sources": (("5", "INT"),),
}
# What sets the two indexes apart: every table macro returns one of these.
OTHERS = """
UPDATE publication SET number = number + 1;
UPDATE text_units SET start_char = start_char + 1;
UPDATE entities SET description = 'another', title = title || ' of another';
UPDATE relationships SET description = 'another', type = 'ANOTHER';
UPDATE covariates SET description = 'the cable of another', subject_id = subject_id || ' of another';
UPDATE documents SET title = title || ' of another';
INSERT INTO search.entity_names BY NAME (SELECT md5_number_lower('the big ship') AS name, 2 AS entity);
"""


@pytest.fixture(scope="module")
def files(sample_index, tmp_path_factory) -> dict[str, Path]:
    """Two indexes with different content, a and b."""
    paths = {name: tmp_path_factory.mktemp("two") / f"{name}.duckdb" for name in "ab"}
    for path in paths.values():
        shutil.copy(sample_index.root / "index" / "graphrag.duckdb", path)
        path.chmod(0o644)
    with duckdb.connect(paths["a"]) as connection:
        connection.execute(
            "INSERT INTO search.entity_names BY NAME (SELECT md5_number_lower('the big ship') AS name, 1 AS entity)"
        )
    with duckdb.connect(paths["b"]) as connection:
        connection.execute(OTHERS)
        write_macros(connection)
    return paths


@pytest.fixture(scope="module")
def expected(files) -> dict[tuple[str, str], list[tuple]]:
    """By index and macro, the rows of its call on that index alone."""
    rows = {}
    for name, path in files.items():
        with duckdb.connect(path, read_only=True) as connection:
            for macro, arguments in CALLS.items():
                call = f"{macro}({', '.join(value for value, _ in arguments)})"
                rows[name, macro] = connection.execute(f"FROM {call}").fetchall()
    return rows


@pytest.fixture(scope="module")
def both(files) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database to which both are attached, with tables of the same names."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA search; CREATE SCHEMA operations")
        for table in PUBLISHED:
            connection.execute(f"CREATE TABLE {table.sql_name} AS SELECT 1 AS mine")
        for name, path in files.items():
            connection.execute(f"ATTACH '{path}' AS {name} (READ_ONLY)")
        yield connection


def on_path(connection: duckdb.DuckDBPyConnection, *databases: str) -> None:
    path = ",".join(f"{name}.{schema}" for name in databases for schema in ("main", "search"))
    connection.execute(f"SET search_path = '{path}'")


def test_every_macro_is_tried_and_has_different_rows_in_both_indexes(index, expected):
    macros = index.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() "
        "WHERE function_type LIKE '%macro' AND database_name = current_database() AND comment IS NOT NULL"
    )
    assert {name for (name,) in macros.fetchall()} == set(CALLS)
    for macro in CALLS:
        assert [] != expected["a", macro] != expected["b", macro] != [], macro


@pytest.mark.parametrize("macro", CALLS)
def test_no_alias_or_column_of_a_query_reaches_the_inside_of_a_macro(both, expected, macro):
    """All aliases at once, as columns with fields: `r.title` is resolved as for a table, and the plan stays small."""
    few = COLUMNS[:5]
    fields = f"{{{', '.join(f'{column}: NULL::VARCHAR' for column in few)}}}"
    aliases = ", ".join(f"{fields} AS {alias}" for alias in ALIASES)
    columns = ", ".join(f"NULL::VARCHAR AS {column}" for column in COLUMNS)
    on_path(both, "memory", *"ab")
    for database, selected, names in (
        ("a", aliases, [f"{alias}.{column}" for alias in ALIASES for column in few]),
        ("b", columns, COLUMNS),
    ):
        arguments = (f"coalesce({', '.join(f'{n}::{kind}' for n in names)}, {value})" for value, kind in CALLS[macro])
        call = f"{database}.{macro}({', '.join(arguments)})"
        rows = both.execute(f"SELECT result.* FROM (SELECT {selected}) outside, LATERAL {call} result").fetchall()
        assert sorted(map(repr, rows)) == sorted(map(repr, expected[database, macro])), database


@pytest.mark.parametrize("macro", CALLS)
def test_a_macro_whose_file_is_not_on_the_search_path_says_so(both, macro):
    on_path(both, "memory", "a")
    with pytest.raises(duckdb.Error, match="put_this_index_on_the_search_path"):
        both.execute(f"FROM b.{macro}({', '.join(value for value, _ in CALLS[macro])})")
