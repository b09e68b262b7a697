"""Keeps the working database small: rewrites a file of mostly free blocks, and trims tables that only grow.

DuckDB reuses the blocks of deleted rows, but neither CHECKPOINT nor VACUUM shrinks a file.
"""

import logging
import os

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


def compact(working: WorkingDatabase, always: bool = False, min_bytes: int = MIN_BYTES) -> None:
    """Rewrite the database file if more than half of it is free, or `always`.

    A crash leaves the old file or the new one. Holds the database's lock, and DuckDB's own lock on the old file until
    the new one has replaced it, so that no other program writes into a file that is about to be replaced.

    Raises:
        StoreError: another process holds the database.
    """
    with draft_folder(working.path.parent) as drafts, working.connect() as connection:
        draft, before = drafts / working.path.name, working.path.stat().st_size
        connection.execute("CHECKPOINT")
        if not always and (before < min_bytes or not one_value(connection, _IS_MOSTLY_FREE)):
            return
        name = one_value(connection, "SELECT current_database()")
        connection.execute(f"ATTACH {literal(draft)} AS compacted ({ROW_GROUPS})")
        connection.execute(f'COPY FROM DATABASE "{name}" TO compacted')
        connection.execute("DETACH compacted")  # a checkpoint: everything is in the file, nothing in a log
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        move_into_place(draft, working.path)
    after = working.path.stat().st_size
    log.info("compacted the working database: %.1f MB, was %.1f MB", after / 1e6, before / 1e6)


def trim_records(
    connection: duckdb.DuckDBPyConnection, runs: int = 10_000, revisions: int = 200, publications: int = 1_000
) -> None:
    """Delete the oldest rows of runs, the history of communities, and publications, beyond so many.

    The last row of each stage and batch stays. `numbers` is not trimmed: a deleted number would be assigned again,
    while old answers cite it. It grows by about 50 bytes per new row.
    """
    is_old = {
        "index_runs": f"row_number() OVER (ORDER BY committed_at DESC, rowid DESC) > {runs} AND "
        "row_number() OVER (PARTITION BY stage, batch ORDER BY committed_at DESC, rowid DESC) > 1",
        "community_history": f"dense_rank() OVER (ORDER BY revision DESC) > {revisions}",
        "publications": f"dense_rank() OVER (ORDER BY number DESC) > {publications}",
    }
    for table, old in is_old.items():
        connection.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} QUALIFY {old})")
