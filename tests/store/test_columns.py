"""What holds for every column of a publication and of its macros, now and later."""

import re

import pytest

from tests.store.test_macro_names import CALLS, SCALARS, call, literals

THINGS = "document text_unit entity relationship neighbor covariate claim mention report"
TYPES = {
    r"id|(?!human_readable_id)\w+_id": "VARCHAR",
    r"\w+_ids": "VARCHAR[]",
    r"human_readable_id|number|\w+_number|community|parent": "BIGINT",
    r"\w+_numbers|children": "BIGINT[]",
}
_OTHER_INTEGERS = re.compile(r"\bU?(TINYINT|SMALLINT|INTEGER|HUGEINT|UBIGINT)\b")


@pytest.fixture(scope="module")
def columns(index) -> list[tuple[str, str, str, str]]:
    """Schema, table, name and type of each column; the schema of what a macro returns is called macro."""
    found = index.execute(
        "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND NOT internal"
    ).fetchall()
    for macro in CALLS.keys() - SCALARS:
        described = index.execute(f"DESCRIBE FROM {call(macro, literals(macro))}").fetchall()
        found += [("macro", macro, name, kind) for name, kind, *_ in described]
    return found


def test_integers_are_bigint(columns):
    hashes = {c for c in columns if c[0] == "search" and c[3] == "UBIGINT"}
    assert [c for c in columns if c not in hashes and _OTHER_INTEGERS.search(c[3])] == []


def test_keys_have_one_spelling(columns):
    wrong = [
        column
        for column in columns
        for name, kind in TYPES.items()
        if re.fullmatch(name, column[2]) and column[3] != kind
    ]
    # A thing's name is its title, but in the tables of searches its number.
    wrong += [c for c in columns if c[2] in THINGS.split() and c[3] != ("BIGINT" if c[0] == "search" else "VARCHAR")]
    # What has a number of its own: a publication. Other numbers are those of a row of some kind.
    numbered = {c[:2] for c in columns if c[2] == "number"} - {c[:2] for c in columns if c[2] == "kind"}
    own = [place for place in numbered if "publication" not in place[1]]
    assert (wrong, own) == ([], [])


def test_no_text_stands_for_a_missing_one(index):
    columns = index.execute(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
        "WHERE schema_name IN ('main', 'operations') AND data_type = 'VARCHAR' AND NOT internal"
    ).fetchall()
    said = "lower({}) IN ('none', 'null', 'n/a', 'nan')"
    found = {
        (table, column): index.execute(
            f'SELECT count(*) FROM {schema}."{table}" WHERE {said.format(column)}'
        ).fetchall()
        for schema, table, column in columns
    }
    assert {place for place, rows in found.items() if rows != [(0,)]} == set()
    assert index.execute("SELECT count(*) FROM covariates WHERE object_id IS NULL").fetchall() > [(0,)]
