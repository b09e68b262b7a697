"""Writes a publication: a new compact file for readers, which takes the place of the previous one atomically.

Readers open a publication read-only. They never wait for a writer, never see a partial index, and keep the file they
have open. Without a change of content, no new publication is written.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
from filelock import FileLock

from graphrag_assets.store.connections import ROW_GROUPS, in_memory, is_below, opened
from graphrag_assets.store.drafts import replacing
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.interrupts import interrupts_raised
from graphrag_assets.store.locks import lock_file
from graphrag_assets.store.publication_content import ROWS_PER_TABLE, content_digest, fill, record
from graphrag_assets.store.publication_files import (
    current_number,
    kept_publications,
    point_to,
    points_to,
    publication_file,
)

Judge = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Publication:
    """A published file: its number, its path, whether this call made it, and the rows of each table."""

    number: int
    path: Path
    is_new: bool
    rows: dict[str, int]


@interrupts_raised()
def publish(
    working: IndexDatabase,
    index_folder: Path,
    keep: int = 3,
    llm_calls: pl.DataFrame | None = None,
    always: bool = False,
    judge: Judge | None = None,
) -> Publication:
    """Publish the working database into `index_folder`; keep the last `keep` publications.

    `llm_calls`: the ledger's entries, as `Ledger.frame` returns them; they become the table llm_calls.
    `always`: write a new file even if its content is that of the newest publication.
    `judge`: called with the new file before readers see it; if it raises, nothing is published.
    """
    with FileLock(lock_file(index_folder, "publishing")):  # two at the same time would give two files one number
        kept = kept_publications(index_folder)
        number = max(kept, default=0) + 1
        path = publication_file(index_folder, number)
        digest = content_digest(working)
        known = "SELECT count(*) FROM publication WHERE number = $number AND content_digest = $digest"
        is_known = working.read(known, {"number": number - 1, "digest": digest}).item()
        if is_known and not always and (whole := _whole(working, index_folder, kept)):
            return whole
        with replacing(path) as draft:
            with working.connect() as connection, opened(connection, draft, "published", _options(working)):
                made = fill(connection, number, digest, llm_calls)
                rows = dict(connection.execute(ROWS_PER_TABLE).fetchall())
                connection.execute("CHECKPOINT published")
            if judge:
                judge(draft)
        point_to(index_folder, number)
        with working.transaction() as connection:
            record(connection, made)
        for old in kept_publications(index_folder)[:-keep]:
            publication_file(index_folder, old).unlink(missing_ok=True)
        return Publication(number, path, True, rows)


def _options(working: IndexDatabase) -> str:
    """The options of the publication's file, which only ATTACH can set.

    Row groups of this size let zone maps find the rows of an entity. A log would write all rows twice, and an
    unfinished draft is thrown away. Blocks of 16 kB make the file of a small index three times smaller; that of a large
    one would be a fifth larger, and slower to scan.
    """
    return f"{ROW_GROUPS}, RECOVERY_MODE NO_WAL_WRITES, BLOCK_SIZE {16_384 if is_below(working.path, 64) else 262_144}"


def delete_publications(index_folder: Path, numbers: Collection[int]) -> None:
    """Delete publications of which at least one is kept. Readers of a deleted one get the newest."""
    with FileLock(lock_file(index_folder, "publishing")):
        if current_number(index_folder) in numbers:
            point_to(index_folder, max(set(kept_publications(index_folder)) - set(numbers)))
        for number in numbers:
            publication_file(index_folder, number).unlink(missing_ok=True)


def intact_publication(working: IndexDatabase, index_folder: Path) -> Publication | None:
    """The newest publication, if it was the last one written, and is whole; else None.

    Repairs pointer and link if they do not lead to an intact publication.
    """
    with FileLock(lock_file(index_folder, "publishing")):
        kept = kept_publications(index_folder)
        last = working.read("SELECT max(number) FROM publication").item()
        return _whole(working, index_folder, kept) if kept and kept[-1] == last else None


def _whole(working: IndexDatabase, index_folder: Path, kept: list[int]) -> Publication | None:
    """The newest publication, unless its file is damaged. Makes pointer and link lead to an intact publication."""
    newest = publication_file(index_folder, kept[-1])
    rows = _rows_of(working, newest)
    if rows is None:
        return None
    current = current_number(index_folder)  # a rollback may have set another one
    if current not in kept[:-1] or not _rows_of(working, publication_file(index_folder, current)):
        current = kept[-1]
    if not points_to(index_folder, current):
        point_to(index_folder, current)
    return Publication(kept[-1], newest, False, rows)


def _rows_of(working: IndexDatabase, publication: Path) -> dict[str, int] | None:
    """The rows of each table of a publication; None if the file is damaged."""
    try:
        with in_memory(working.path, working.memory) as connection, opened(connection, publication, "published"):
            return dict(connection.execute(ROWS_PER_TABLE).fetchall())
    except duckdb.Error:
        return None
