"""Space: the working database gives back what it no longer needs, and its books keep a bounded length.

DuckDB reuses the blocks that deleted rows leave, but a file never shrinks, whatever CHECKPOINT or VACUUM do. So a
file that is mostly free blocks is written anew, and the new one takes the old one's place.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from graphrag_assets.store.schema import literal
from graphrag_assets.store.working import WorkingDatabase

log = logging.getLogger(__name__)

LEAST_BYTES = 64 * 2**20
"""A smaller file is left as it is: writing it anew would win little."""
KEPT_RUNS = 10_000
KEPT_REVISIONS = 200
KEPT_PUBLICATION_ROWS = 1_000


class Compacted(NamedTuple):
    """Bytes of the database file before and after; equal when it was left as it is."""

    before: int
    after: int


def compact(working: WorkingDatabase, always: bool = False, least_bytes: int = LEAST_BYTES) -> Compacted:
    """Write the database file anew if more than half of it is free, or `always`.

    A crash leaves the old file or the new one, and at most a draft beside it that the next call removes. Behind
    the database's lock; DuckDB's own lock on the old file is held until the new one is in its place, so no other
    program can be writing into a file that is about to go.

    Raises:
        StoreError: another process holds the database.
    """
    draft = working.path.with_name(f".{working.path.name}.compacted")
    with working.connect() as connection:
        before = working.path.stat().st_size
        for leftover in (draft, _log_of(draft)):
            leftover.unlink(missing_ok=True)
        connection.execute("CHECKPOINT")
        if not always and not _worth_it(connection, before, least_bytes):
            return Compacted(before, before)
        ((name,),) = connection.execute("SELECT current_database()").fetchall()
        connection.execute(f"ATTACH {literal(draft)} AS compacted (STORAGE_VERSION 'v1.5.0')")
        connection.execute(f'COPY FROM DATABASE "{name}" TO compacted')
        connection.execute("DETACH compacted")  # checkpoints it: all is in the file, nothing in a log
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(working.path)
    after = working.path.stat().st_size
    log.info("the working database is compacted: %.1f MB, before %.1f MB", after / 1e6, before / 1e6)
    return Compacted(before, after)


def _worth_it(connection: duckdb.DuckDBPyConnection, size: int, least_bytes: int) -> bool:
    if size < least_bytes:
        return False
    blocks = connection.execute(
        "SELECT used_blocks, free_blocks FROM pragma_database_size() WHERE database_name = current_database()"
    ).fetchall()
    ((used, free),) = blocks
    return bool(free > used)


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


_LATEST_OF_STAGE = "QUALIFY row_number() OVER (PARTITION BY stage, batch ORDER BY committed_at DESC, run_id DESC) = 1"


def trim_records(
    connection: duckdb.DuckDBPyConnection,
    runs: int = KEPT_RUNS,
    revisions: int = KEPT_REVISIONS,
    publications: int = KEPT_PUBLICATION_ROWS,
) -> None:
    """Bound the tables that only grow: runs, the history of communities, publications.

    The newest rows stay, and of index_runs the last row of each stage and batch too. `numbers` is not trimmed: a
    number that is forgotten would be given again, and old answers cite it. It grows by about 50 bytes for each row
    that was ever new.
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
