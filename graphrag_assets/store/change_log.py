"""The change log: which rows of the working database were written since its readers last looked.

A stage that derives tables from others reads the changes since its mark, does what they require, and sets its mark in
the transaction that commits its work. Without a mark, it derives everything. So nothing is logged before the first
mark: a first index does not fill the log.

A change that touches most of a table is one entry without an id: readers then derive everything. So they do if a table
has another number of rows than after its last logged write: then something else has written it.
"""

from collections.abc import Collection
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.store.connections import one_value
from graphrag_assets.store.schema import Table, identifier

# By table: what identifies a changed row, and the keys of other rows that it concerns.
_LOGGED = {
    "documents": ("id", "[batch, coalesce(document_date::VARCHAR, '')]"),
    "text_units": ("id", "[document_id]"),
    "entity_mentions": ("id", "[title_key, document_id]"),
    "relationship_mentions": ("id", "[source_key, target_key, document_id]"),
    "covariates": ("id", "[subject_key, object_key, text_unit_id]"),
    "entities": ("id", "[title_key]"),
    "relationships": ("id", "[source_id, target_id]"),
    "communities": ("id", "[community::VARCHAR, parent::VARCHAR]"),
    "community_members": ("entity_id", "[community::VARCHAR]"),
    "community_history": ("revision::VARCHAR", "[]"),
    "community_reports": ("id", "[community::VARCHAR, parent::VARCHAR]"),
    "citations": ("report_id", "[]"),
    "embeddings": ("id", "[kind]"),
}
LOGGED = frozenset(_LOGGED)
"""The tables whose changes are logged."""
_COUNTS = " UNION ALL ".join(f"SELECT '{name}' AS table_name, count(*) AS rows FROM {name}" for name in _LOGGED)
LARGE_SHARE = 0.2
"""A change of a larger share of a table counts as one of the whole table."""
_SMALL = 1_000  # so many rows are logged one by one in any case


class Changed(NamedTuple):
    """Changes since a mark: `revision` to set the mark to; `rows` with table_name, id and concerns (a list of keys)."""

    revision: int
    rows: pl.DataFrame

    def of(self, *tables: str) -> pl.DataFrame:
        """The changed rows of these tables."""
        return self.rows.filter(pl.col("table_name").is_in(tables))

    def ids(self, *tables: str) -> pl.Series:
        """The distinct ids of the changed rows of these tables."""
        return self.of(*tables)["id"].unique()

    def concerns(self, table: str) -> pl.DataFrame:
        """id and key of what the changed rows of a table concern, a row per key."""
        return self.of(table).select("id", key="concerns").explode("key").unique()

    def ends(self) -> dict[str, list[str]]:
        """The ids of the `sources` of the changed relationships, and of their `targets`, in the same order."""
        concerns = self.of("relationships")["concerns"]
        return {"sources": concerns.list.get(0).to_list(), "targets": concerns.list.get(1).to_list()}


def log_changes(connection: duckdb.DuckDBPyConnection, table: Table, relation: str) -> None:
    """Log the rows of `relation`, which has all columns of `table`: those deleted and those inserted.

    Part of the transaction that writes them.
    """
    if not is_logged(connection, table):
        return
    row_id, concerns = _LOGGED[table.name]
    changed = one_value(connection, f"SELECT count(DISTINCT {row_id}) FROM {relation}")
    if not changed:
        return
    rows = one_value(connection, f"SELECT count(*) FROM {identifier(table.name)}")
    connection.execute("UPDATE logged_counts SET rows = $n WHERE table_name = $t", {"n": rows, "t": table.name})
    is_large = changed > _SMALL and changed > LARGE_SHARE * rows
    logged = "SELECT NULL, NULL" if is_large else f"SELECT DISTINCT {row_id}, {concerns} FROM {relation}"
    connection.execute(
        f"INSERT INTO changed_rows SELECT (SELECT {_LAST} + 1), $table, * FROM ({logged})", {"table": table.name}
    )


def is_logged(connection: duckdb.DuckDBPyConnection, table: Table) -> bool:
    """Whether changes of `table` are logged now."""
    return table.name in _LOGGED and _has_marks(connection)


_LAST = (
    "greatest((SELECT coalesce(max(revision), 0) FROM changed_rows), "
    "(SELECT coalesce(max(revision), 0) FROM change_marks))"
)


def _has_marks(connection: duckdb.DuckDBPyConnection) -> bool:
    return bool(one_value(connection, "SELECT count(*) FROM change_marks"))


def last_revision(connection: duckdb.DuckDBPyConnection) -> int:
    """The revision of the last logged change: what to set a mark to after deriving everything."""
    return int(one_value(connection, f"SELECT {_LAST}"))


def changes_since_mark(
    connection: duckdb.DuckDBPyConnection, reader: str, tables: Collection[str], made_with: str = ""
) -> Changed | None:
    """The changes of `tables` since the mark of `reader`.

    None if everything is to be derived: there is no mark, it was set with another `made_with` (settings, code), a table
    changed as a whole, or was written past the log.
    """
    mark = _mark(connection, reader, made_with)
    if mark is None or _written_past(connection):
        return None
    rows = connection.sql(
        "SELECT table_name, id, concerns FROM changed_rows "
        "WHERE revision > $mark AND list_contains($tables, table_name)",
        params={"mark": mark, "tables": list(tables)},
    ).pl()
    return None if rows["id"].null_count() else Changed(last_revision(connection), rows)


def has_mark(connection: duckdb.DuckDBPyConnection, reader: str, made_with: str) -> bool:
    """Whether `reader` has a mark that was set with `made_with`."""
    return _mark(connection, reader, made_with) is not None


def _mark(connection: duckdb.DuckDBPyConnection, reader: str, made_with: str) -> int | None:
    """The revision of a reader's mark; None if it has none that was set with `made_with`."""
    marks = connection.execute(
        "SELECT revision FROM change_marks WHERE reader = $reader AND made_with = $made_with",
        {"reader": reader, "made_with": made_with},
    ).fetchall()
    return int(marks[0][0]) if marks else None


def set_mark(
    connection: duckdb.DuckDBPyConnection, reader: str, tables: Collection[str], revision: int, made_with: str = ""
) -> None:
    """Set the mark of `reader`, which reads `tables`; delete the changes that all readers of their table have seen.

    The log names what documents name, so it keeps nothing longer than needed.
    """
    if _written_past(connection):
        remove_marks(connection)  # the others do not know it either
    if not _has_marks(connection):
        connection.execute(f"DELETE FROM logged_counts; INSERT INTO logged_counts {_COUNTS}")
    remove_mark(connection, reader)
    connection.execute(
        "INSERT INTO change_marks VALUES ($reader, $revision, $made_with, $tables)",
        {"reader": reader, "revision": revision, "made_with": made_with, "tables": sorted(tables)},
    )
    connection.execute(
        "DELETE FROM changed_rows c WHERE NOT EXISTS "
        "(FROM change_marks m WHERE list_contains(m.tables, c.table_name) AND m.revision < c.revision)"
    )


def _written_past(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a logged table has another number of rows than after its last logged write."""
    differing = f"SELECT count(*) FROM ({_COUNTS}) c JOIN logged_counts l USING (table_name) WHERE c.rows <> l.rows"
    return bool(one_value(connection, differing))


def remove_mark(connection: duckdb.DuckDBPyConnection, reader: str) -> None:
    """Make `reader` recompute everything, such as while it has written a part."""
    connection.execute("DELETE FROM change_marks WHERE reader = $reader", {"reader": reader})


def remove_marks(connection: duckdb.DuckDBPyConnection) -> None:
    """Make every reader recompute everything, such as after rows were written past the log."""
    connection.execute("DELETE FROM change_marks; DELETE FROM changed_rows")
