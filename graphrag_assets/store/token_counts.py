"""Counts the tokens of rows as contexts show them, once at publication: a search weighs a few hundred rows.

Only new rows are counted, whose count is null.

The cells are those of the default layouts in `query.local`; claims and text units have the dates of their documents if
one of these has a date.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import polars as pl

from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.text.words import count_tokens, lines

_ROWS_PER_PART = 20_000


# Table, column, and the cells of the line whose tokens it has.
_COUNTED = (
    ("entities", "line_tokens", "human_readable_id, title, type, description, degree"),
    # Links are known at query time; a number below a thousand is one token.
    (
        "relationships",
        "line_tokens",
        "human_readable_id, source, target, coalesce(nullif(relations, ''), type), description, round(weight, 2), 0",
    ),
    (
        "covariates",
        "line_tokens",
        "human_readable_id, {date}subject_id, object_id, type, "
        "status || CASE WHEN superseded_by IS NULL THEN '' ELSE ' until ' || valid_until END, "
        "start_date, end_date, description",
    ),
    ("text_units", "line_tokens", "human_readable_id, {date}context, text"),
    ("community_reports", "line_tokens", "human_readable_id, title, full_content"),
    ("community_reports", "short_line_tokens", "human_readable_id, title, summary"),
)


def write_token_counts(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the columns line_tokens, short_line_tokens, content_tokens and summary_tokens where they are null.

    Args:
        connection: has the publication open.
    """
    date = "(SELECT d.document_date FROM documents d WHERE d.id = document_id), " if has_dates(connection) else ""
    for table, column, cells in _COUNTED:
        for found in _uncounted(connection, table, column, cells.format(date=date)):
            cells_by_column = list(zip(*found, strict=True))
            _write(connection, table, column, cells_by_column[0], count_tokens(lines(cells_by_column)))
    for column, counted in (("content_tokens", "full_content"), ("summary_tokens", "summary")):
        cells = f"human_readable_id, coalesce({counted}, '')"
        for found in _uncounted(connection, "community_reports", column, cells):
            numbers, texts = zip(*found, strict=True)
            _write(connection, "community_reports", column, numbers, count_tokens(texts))


def has_dates(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a document of the publication open in `connection` has a date: then contexts show them."""
    return bool(one_value(connection, "SELECT count(document_date) FROM documents"))


def _uncounted(
    connection: duckdb.DuckDBPyConnection, table: str, column: str, cells: str
) -> Iterator[list[tuple[Any, ...]]]:
    """The cells of the rows whose count is null, the number first, in parts of bounded size."""
    numbers = f"SELECT human_readable_id FROM {table} WHERE {column} IS NULL ORDER BY human_readable_id"
    for part in connection.sql(numbers).pl().iter_slices(_ROWS_PER_PART):
        query = f"SELECT {cells} FROM {table} WHERE human_readable_id BETWEEN $first AND $last AND {column} IS NULL"
        yield connection.execute(query, {"first": part.item(0, 0), "last": part.item(-1, 0)}).fetchall()


def _write(
    connection: duckdb.DuckDBPyConnection, table: str, column: str, numbers: Sequence[int], tokens: Sequence[int]
) -> None:
    counted = pl.DataFrame({"number": numbers, "tokens": tokens})
    update = f"UPDATE {table} SET {column} = tokens FROM counted WHERE human_readable_id = number"
    execute_with(connection, update, counted=counted)
