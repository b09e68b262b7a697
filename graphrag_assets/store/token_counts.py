"""Counts the tokens of rows as contexts show them: a search weighs a few hundred rows.

The counts are kept in the index by the hash of what is counted, so a publication counts what is new only.

The cells are those of the default layouts in `query.local`; claims and text units have the dates of their documents if
one of these has a date.
"""

from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.store.connections import execute_in_order, execute_with, one_value
from graphrag_assets.text.words import count_tokens, lines

_ROWS_PER_PART = 20_000
_COUNTED_WITH = "o200k_base"


class Counted(NamedTuple):
    """A column of token counts: its table, and the cells of the line, or the one text, whose tokens it has."""

    table: str
    column: str
    cells: str
    is_line: bool = True

    @property
    def hash(self) -> str:
        """The hash of what is counted, in SQL."""
        return f"md5_number_lower(row('{_COUNTED_WITH}', {self.is_line}, {self.cells})::VARCHAR)"


def without_citations(report: str) -> str:
    """Return SQL for the text of a report without its references `[Data: …]`, whose rows a context may not have."""
    return rf"regexp_replace({report}, '\s*\[Data: [^\]]*\]', '', 'g')"


def counted_columns(connection: duckdb.DuckDBPyConnection) -> list[Counted]:
    """Return the columns of the publication in use that have token counts. Its documents must be in it."""
    has_dates = one_value(connection, "SELECT count(document_date) FROM documents")
    report = without_citations("full_content")
    date = "(SELECT d.document_date FROM documents d WHERE d.id = document_id), " if has_dates else ""
    return [
        Counted("entities", "line_tokens", "human_readable_id, title, type, description, degree"),
        # Links are known at query time; a number below a thousand is one token.
        Counted(
            "relationships",
            "line_tokens",
            "human_readable_id, source, target, coalesce(nullif(relations, ''), type), description, "
            "round(weight, 2), 0",
        ),
        Counted(
            "covariates",
            "line_tokens",
            f"human_readable_id, {date}subject_id, object_id, type, "
            "status || CASE WHEN superseded_by IS NULL THEN '' ELSE ' until ' || valid_until END, "
            "start_date, end_date, description",
        ),
        Counted("text_units", "line_tokens", f"human_readable_id, {date}context, text"),
        Counted("community_reports", "line_tokens", f"human_readable_id, title, {report}"),
        Counted("community_reports", "short_line_tokens", "human_readable_id, title, summary"),
        Counted("community_reports", "content_tokens", f"coalesce({report}, '')", is_line=False),
        Counted("community_reports", "summary_tokens", "coalesce(summary, '')", is_line=False),
    ]


def count_new(connection: duckdb.DuckDBPyConnection, columns: list[Counted], suffix: str = "_now") -> None:
    """Keep the counts of `columns` in the index, attached as `working`, and no others.

    Args:
        suffix: what the tables to read have behind their names.
    """
    wanted = " UNION ALL ".join(f"SELECT {counted.hash} FROM {counted.table}{suffix}" for counted in columns)
    connection.execute(f"DELETE FROM working.token_counts WHERE text NOT IN ({wanted})")
    for counted in columns:
        uncounted = (
            f"SELECT DISTINCT {counted.hash} AS hash, {counted.cells} FROM {counted.table}{suffix} "
            f"WHERE hash NOT IN (SELECT text FROM working.token_counts) LIMIT {_ROWS_PER_PART}"
        )
        while rows := connection.execute(uncounted).fetchall():
            hashes, *cells = zip(*rows, strict=True)
            counts = count_tokens(lines(cells) if counted.is_line else map(str, cells[0]))
            part = pl.DataFrame({"text": hashes, "tokens": counts}, {"text": pl.UInt64, "tokens": pl.Int64})
            execute_with(connection, "INSERT INTO working.token_counts FROM part", part=part)


def insert_counted(connection: duckdb.DuckDBPyConnection, table: str, columns: list[Counted]) -> None:
    """Fill a table of the publication from the relation with its name and _now, with its token counts."""
    counted = [column for column in columns if column.table == table]
    hashes = ", ".join(f"{column.hash} AS hash_of_{column.column}" for column in counted)
    tokens = ", ".join(f"{column.column}.tokens AS {column.column}" for column in counted)
    joins = " ".join(
        f"LEFT JOIN working.token_counts {column.column} ON {column.column}.text = hash_of_{column.column}"
        for column in counted
    )
    execute_in_order(
        connection,
        f"INSERT INTO {table} BY NAME WITH hashed AS (SELECT *, {hashes} FROM {table}_now) "
        f"SELECT hashed.* EXCLUDE ({', '.join(f'hash_of_{column.column}' for column in counted)}), {tokens} "
        f"FROM hashed {joins}",
    )
