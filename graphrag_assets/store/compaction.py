"""Keeps the working database small: rewrites a file of mostly free blocks, and trims tables that only grow.

DuckDB reuses the blocks of deleted rows, but neither CHECKPOINT nor VACUUM shrinks a file.
"""

import logging
import os
from collections.abc import Sequence
from typing import NamedTuple

import duckdb

from graphrag_assets.store.connections import ROW_GROUPS, one_value
from graphrag_assets.store.drafts import draft_folder, move_into_place
from graphrag_assets.store.schema import literal
from graphrag_assets.store.working import WorkingDatabase

log = logging.getLogger(__name__)

MIN_BYTES = 64 * 2**20
"""Smaller files are not worth rewriting."""
_IS_MOSTLY_FREE = (
    "SELECT free_blocks > used_blocks FROM pragma_database_size() WHERE database_name = current_database()"
)
KEPT_RUNS = 10_000
KEPT_REVISIONS = 200
KEPT_PUBLICATION_ROWS = 1_000


class Compacted(NamedTuple):
    """Bytes of the database file before and after; equal when it was not rewritten."""

    before: int
    after: int


def compact(working: WorkingDatabase, always: bool = False, min_bytes: int = MIN_BYTES) -> Compacted:
    """Rewrite the database file if more than half of it is free, or `always`.

    A crash leaves the old file or the new one, and at most a draft, which the next one removes. Holds the database's
    lock, and DuckDB's own lock on the old file until the new one has replaced it, so that no other program writes
    into a file that is about to be replaced.

    Raises:
        StoreError: another process holds the database.
    """
    with draft_folder(working.path.parent) as drafts, working.connect() as connection:
        draft, before = drafts / working.path.name, working.path.stat().st_size
        connection.execute("CHECKPOINT")
        if not always and (before < min_bytes or not one_value(connection, _IS_MOSTLY_FREE)):
            return Compacted(before, before)
        name = one_value(connection, "SELECT current_database()")
        connection.execute(f"ATTACH {literal(draft)} AS compacted ({ROW_GROUPS})")
        connection.execute(f'COPY FROM DATABASE "{name}" TO compacted')
        connection.execute("DETACH compacted")  # a checkpoint: everything is in the file, nothing in a log
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        move_into_place(draft, working.path)
    after = working.path.stat().st_size
    log.info("compacted the working database: %.1f MB, was %.1f MB", after / 1e6, before / 1e6)
    return Compacted(before, after)


_LATEST_OF_STAGE = "QUALIFY row_number() OVER (PARTITION BY stage, batch ORDER BY committed_at DESC, run_id DESC) = 1"


def trim_records(
    connection: duckdb.DuckDBPyConnection,
    runs: int = KEPT_RUNS,
    revisions: int = KEPT_REVISIONS,
    publications: int = KEPT_PUBLICATION_ROWS,
) -> None:
    """Bound the tables that only grow: runs, the history of communities, publications.

    The newest rows stay, and the last row of each stage and batch in index_runs. `numbers` is not trimmed: a deleted
    number would be assigned again, while old answers cite it. It grows by about 50 bytes per new row.
    """
    statements: Sequence[tuple[str, int]] = (
        (
            "DELETE FROM index_runs WHERE rowid NOT IN (SELECT rowid FROM index_runs ORDER BY committed_at DESC, rowid "
            f"DESC LIMIT $kept) AND rowid NOT IN (SELECT rowid FROM index_runs {_LATEST_OF_STAGE})",
            runs,
        ),
        (
            "DELETE FROM community_history WHERE revision NOT IN "
            "(SELECT DISTINCT revision FROM community_history ORDER BY revision DESC LIMIT $kept)",
            revisions,
        ),
        (
            "DELETE FROM publications WHERE number NOT IN "
            "(SELECT number FROM publications ORDER BY number DESC LIMIT $kept)",
            publications,
        ),
    )
    for statement, kept in statements:
        connection.execute(statement, {"kept": kept})
