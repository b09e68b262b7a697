"""Macros and views of a publication, for use in plain SQL from any DuckDB client.

The SQL is in `sql/macros/*.sql` and `sql/graphrag_v3.sql`; once it is in the file, it does not need this package.
"""

import functools
from importlib.resources import files

import duckdb
import polars as pl

from graphrag_assets.store.publication_schema import CHARACTER_FORMS, MAIN
from graphrag_assets.store.schema import literal
from graphrag_assets.text import words as text

_FILES = ("text", "search", "graph", "evidence", "lineage", "context", "facts", "contradictions", "spend")

# Where compatibility forms and letters whose case folding is not their lower case are: not among the ideographs and
# Hangul syllables that fill most of the planes.
_PLACES = ((0xA0, 0x3400), (0xA640, 0xAC00), (0xF900, 0x10000), (0x10000, 0x20000), (0x2F800, 0x2FA20))


def write_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Create or replace all macros and views in the publication that is the current database of `connection`."""
    connection.register("forms", _character_forms())
    connection.begin()  # one commit, not one for each of a hundred statements
    try:
        connection.execute(CHARACTER_FORMS.ddl())
        connection.execute(f"DELETE FROM {CHARACTER_FORMS.sql_name}")
        connection.execute(f"INSERT INTO {CHARACTER_FORMS.sql_name} FROM forms")
        connection.execute(macros_sql())
        _comment_on_views(connection)
        connection.commit()
    except duckdb.Error:
        connection.rollback()
        raise
    finally:
        connection.unregister("forms")


@functools.cache
def macros_sql() -> str:
    """The statements that create all macros and views, with their comments."""
    folder = files("graphrag_assets.store").joinpath("sql")
    given = {
        "{unspaced}": _re2(text.UNSPACED),
        "{cjk}": text.CJK,
        "{optional_marks}": _re2(text.OPTIONAL_MARKS),
        "{invisible}": _re2("".join(map(chr, text.INVISIBLE))),
        "{possessive}": literal(text.POSSESSIVE),
        "{compound}": literal(text.COMPOUND),
        "{hyphen}": literal(text.HYPHEN),
    }
    parts = [folder.joinpath(f"macros/{name}.sql").read_text("utf-8") for name in _FILES]
    sql = "\n".join([*parts, folder.joinpath("graphrag_v3.sql").read_text("utf-8")])
    for name, value in given.items():
        sql = sql.replace(name, value)
    return sql


def _comment_on_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Copy the tables' comments to the views."""
    columns = connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() "
        "WHERE database_name = current_database() AND schema_name = 'graphrag_v3'"
    ).fetchall()
    comments = {(table.name, column.name): column.comment for table in MAIN for column in table.columns}
    statements = [f"COMMENT ON COLUMN graphrag_v3.{t}.{c} IS {literal(comments[t, c])}" for t, c in columns]
    statements += [
        f"COMMENT ON VIEW graphrag_v3.{table.name} IS {literal(f'As GraphRAG 3 writes it. {table.comment}')}"
        for table in MAIN
        if table.name in {name for name, _ in columns}
    ]
    connection.execute(";".join(statements))


def _re2(characters: str) -> str:
    return "".join(c if c.isascii() else f"\\x{{{ord(c):x}}}" for c in characters)


@functools.cache
def _character_forms() -> pl.DataFrame:
    """purpose, character, replacement: mappings with which DuckDB normalizes text as `text.words` does."""
    characters = pl.Series([chr(code) for first, end in _PLACES for code in range(first, end)])
    frame = pl.DataFrame({"character": characters}).with_columns(
        purpose=pl.lit("nfkc"), replacement=pl.col("character").str.normalize("NFKC")
    )
    compatible = frame.filter(pl.col("replacement") != pl.col("character").str.normalize("NFC"))
    folded = {c: c.casefold() for c in characters if c == c.lower() != c.casefold()}
    folding = pl.DataFrame(
        {"character": list(folded), "purpose": "casefold", "replacement": list(folded.values())},
    )
    letters = [
        pl.DataFrame({"character": [chr(c) for c in table], "purpose": purpose, "replacement": list(table.values())})
        for purpose, table in (("fold", text.FOLDED), ("spell_out", text.SPELLED_OUT))
    ]
    columns = ("purpose", "character", "replacement")
    parts = [part.select(columns) for part in (compatible, folding, *letters)]
    return pl.concat(parts).sort("purpose", "character")
