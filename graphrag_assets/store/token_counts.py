"""Counts the tokens of rows as contexts show them, once at publication: a search weighs a few hundred rows.

The cells are those of the default layouts in `query.local`; claims and text units have the dates of their documents if
one of these has a date.
"""

import duckdb
import polars as pl

from graphrag_assets.store.connections import execute_with
from graphrag_assets.text import count_tokens, lines

_ROWS_AT_ONCE = 20_000


# Table, column, and the cells of the line whose tokens it has.
_COUNTED = (
    ("entities", "line_tokens", "human_readable_id, title, type, description, degree"),
    # Links are known at query time; a number below a thousand is one token.
    ("relationships", "line_tokens", "human_readable_id, source, target, type, description, round(weight, 2), 0"),
    (
        "covariates",
        "line_tokens",
        "human_readable_id, {date}subject_id, object_id, type, status, start_date, end_date, description",
    ),
    ("text_units", "line_tokens", "human_readable_id, {date}context, text"),
    ("community_reports", "line_tokens", "human_readable_id, title, full_content"),
    ("community_reports", "short_line_tokens", "human_readable_id, title, summary"),
)


def write_token_counts(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the columns line_tokens and short_line_tokens of the publication open in `connection`."""
    ((dates,),) = connection.execute("SELECT count(document_date) FROM documents").fetchall()
    date = "(SELECT d.document_date FROM documents d WHERE d.id = document_id), " if dates else ""
    for table, column, cells in _COUNTED:
        ((rows,),) = connection.execute(f"SELECT coalesce(max(human_readable_id) + 1, 0) FROM {table}").fetchall()
        for first in range(0, rows, _ROWS_AT_ONCE):
            found = connection.execute(
                f"SELECT {cells.format(date=date)} FROM {table} WHERE human_readable_id BETWEEN $first AND $last",
                {"first": first, "last": first + _ROWS_AT_ONCE - 1},
            ).fetchall()
            cells_by_column = list(zip(*found, strict=True)) or [()]
            counted = pl.DataFrame({"number": cells_by_column[0], "tokens": count_tokens(lines(cells_by_column))})
            update = f"UPDATE {table} SET {column} = tokens FROM counted WHERE human_readable_id = number"
            execute_with(connection, update, counted=counted)
