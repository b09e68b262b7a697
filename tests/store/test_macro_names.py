"""Names in a query, and other databases, do not reach the inside of a macro."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.store.macros import write_macros
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.schema import PUBLISHED

_ALIASES = """
a b c d e f g h m n p q r s t u v w x q1 documents entities relationships covariates communities community_reports
text_units reports claims called numbers chosen met named cited passages asked best words wanted"""
_COLUMNS = """
title id name entity community text human_readable_id number word language documents character place folded plain normal
table_name kind query level hops budget claims term relationship stop_words way nodes score key entities since until day
min_score what max_hops text_unit claim"""
ALIASES, COLUMNS = _ALIASES.split(), _COLUMNS.split()

# By macro: its arguments with their types.
CALLS: dict[str, tuple[tuple[str, str], ...]] = {
    "entities_called": (("'the big ship'", "VARCHAR"),),
    "neighbors": (("'great eastern'", "VARCHAR"), ("2", "INT")),
    "path_between": (("'Samuel Morse'", "VARCHAR"), ("'Daniel Gooch'", "VARCHAR"), ("4", "INT")),
    "entity_timeline": (("'great eastern'", "VARCHAR"),),
    "facts_as_of": (("'1866-12-31'", "VARCHAR"),),
    "history_of": (("'great eastern'", "VARCHAR"),),
    "report_sources": (("5", "INT"),),
}
# What sets the two indexes apart: every table macro returns one of these.
_OF_ONE = """
UPDATE publication SET number = number + {n};
UPDATE text_units SET text = text || ' in {name}', start_char = start_char + {n};
UPDATE entities SET description = 'in {name}', title = title || ' in {name}';
UPDATE relationships SET description = 'in {name}', type = 'IN_{name}';
UPDATE covariates SET description = 'the cable in {name}', subject_id = subject_id || ' in {name}';
UPDATE documents SET title = title || ' in {name}';
UPDATE community_reports SET title = title || ' in {name}';
INSERT INTO search.entity_names BY NAME (SELECT md5_number_lower('the big ship') AS name, {n} AS entity);
"""


def call(macro: str, arguments: Sequence[str], database: str = "") -> str:
    return f"{database}{macro}({', '.join(arguments)})"


def literals(macro: str) -> list[str]:
    return [value for value, _ in CALLS[macro]]


@pytest.fixture(scope="module")
def alone(sample_index, tmp_path_factory) -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    """Connections to two indexes with different content, a and b."""
    folder, opened = tmp_path_factory.mktemp("two"), {}
    older = folder / "older.duckdb"
    shutil.copy(CurrentPublication(sample_index.root / "index").reader().path, older)
    for n, name in enumerate("ab", 1):
        path = folder / f"{name}.duckdb"
        shutil.copy(older, path)
        path.chmod(0o644)
        with duckdb.connect(str(path)) as connection:
            connection.execute(_OF_ONE.format(n=n, name=name))
            write_macros(connection)
        opened[name] = duckdb.connect(str(path), read_only=True)
        opened[name].execute(f"ATTACH '{older}' AS older (READ_ONLY)")
    yield opened
    for connection in opened.values():
        connection.close()


@pytest.fixture(scope="module")
def rows_of(alone) -> dict[tuple[str, str], list[tuple]]:
    """By index and macro, the rows of its call on that index alone."""
    return {
        (name, macro): connection.execute(f"FROM {call(macro, literals(macro))}").fetchall()
        for name, connection in alone.items()
        for macro in CALLS
    }


@pytest.fixture(scope="module")
def both(alone) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database to which both are attached, with tables and macros of the same names."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA search; CREATE SCHEMA operations")
        for table in PUBLISHED:
            connection.execute(f"CREATE TABLE {table.sql_name} AS SELECT 1 AS mine")
        for name, index in alone.items():
            path = index.execute("SELECT path FROM duckdb_databases() ORDER BY database_name = $1", [name]).fetchall()[
                -1
            ][0]
            connection.execute(f"ATTACH '{path}' AS {name} (READ_ONLY)")
        connection.execute(f"ATTACH '{Path(path).with_name('older.duckdb')}' AS older (READ_ONLY)")
        yield connection


def on_path(connection: duckdb.DuckDBPyConnection, *databases: str) -> None:
    path = ",".join(f"{name}.{schema}" for name in databases for schema in ("main", "search"))
    connection.execute(f"SET search_path = '{path}'")


def test_every_macro_is_tried_and_has_different_rows_in_both_indexes(alone, rows_of):
    macros = alone["a"].execute(
        "SELECT DISTINCT if(schema_name = 'main', '', 'search.') || function_name FROM duckdb_functions() "
        "WHERE function_type LIKE '%macro' AND database_name = current_database() AND NOT internal "
        "AND comment IS NOT NULL"
    )
    assert {name for (name,) in macros.fetchall()} == set(CALLS)
    for macro in CALLS:
        assert rows_of["a", macro], macro
        assert rows_of["b", macro], macro
        assert rows_of["a", macro] != rows_of["b", macro], macro


def rows(
    connection: duckdb.DuckDBPyConnection, macro: str, database: str, tables: str, names: list[str]
) -> list[tuple]:
    """The rows of a call whose arguments are the first of these columns that is not null, and none is."""
    arguments = [f"coalesce({', '.join(f'{name}::{kind}' for name in names)}, {value})" for value, kind in CALLS[macro]]
    query = f"SELECT result.* FROM {tables}, LATERAL {call(macro, arguments, f'{database}.')} result"
    return connection.execute(query).fetchall()


@pytest.mark.parametrize("macro", CALLS)
def test_no_alias_or_column_of_a_query_reaches_the_inside_of_a_macro(both, rows_of, macro):
    """All aliases at once, as columns with fields: `r.title` is resolved as for a table, and the plan stays small."""
    few = COLUMNS[:5]
    fields = f"{{{', '.join(f'{column}: NULL::VARCHAR' for column in few)}}}"
    aliases = ", ".join(f"{fields} AS {alias}" for alias in ALIASES)
    columns = ", ".join(f"NULL::VARCHAR AS {column}" for column in COLUMNS)
    tried = {
        "aliases": (f"(SELECT {aliases}) outside", [f"{alias}.{column}" for alias in ALIASES for column in few]),
        "columns": (f"(SELECT {columns}) outside", COLUMNS),
    }
    on_path(both, "memory", *"ab")
    for database in "ab":
        expected = sorted(map(repr, rows_of[database, macro]))
        for name, (tables, names) in tried.items():
            if name == "aliases" or database == "b":
                found = rows(both, macro, database, tables, names)
                assert sorted(map(repr, found)) == expected, (name, database)


@pytest.mark.parametrize("macro", sorted(CALLS))
def test_a_macro_whose_file_is_not_on_the_search_path_says_so(both, macro):
    on_path(both, "memory", "a")
    with pytest.raises(duckdb.Error, match="put_this_index_on_the_search_path"):
        both.execute(f"FROM {call(macro, literals(macro), 'b.')}")
