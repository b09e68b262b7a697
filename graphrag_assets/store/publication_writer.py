"""Writes a publication: a new compact file for readers, which takes the place of the previous one atomically.

Readers open a publication read-only. They never wait for a writer, never see a partial index, and keep the file they
have open. Without a change of content, no new publication is written.

After a small change, the new file begins as a copy of the last one, in which the rows that the change log names, and
what depends on them, are replaced. It is made from nothing if there is no such file, after a large change, or when
replaced rows have made the file half as large again as it began.
"""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from filelock import FileLock

from graphrag_assets import __version__
from graphrag_assets.store.change_log import LOGGED, last_revision, set_mark
from graphrag_assets.store.connections import Limits
from graphrag_assets.store.drafts import copy_file, draft_folder, make_folder, move_into_place
from graphrag_assets.store.interrupts import interrupts_raised
from graphrag_assets.store.locks import lock_file
from graphrag_assets.store.publication_content import (
    READER,
    Made,
    Source,
    Update,
    content_digest,
    fill,
    publication_shape,
    reading,
    record,
    rows_of,
    state_since,
    update,
)
from graphrag_assets.store.publication_files import (
    FOLDER,
    current_number,
    kept_publications,
    point_to,
    points_to,
    publication_file,
)
from graphrag_assets.store.working import WorkingDatabase

MAX_GROWTH = 1.5
"""Replaced rows stay in the file; one that has grown by more is made from nothing."""


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
    working: WorkingDatabase,
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
    make_folder(index_folder / FOLDER)
    with FileLock(lock_file(index_folder, "publishing")):  # two at the same time would give two files one number
        return _publish(working, index_folder, keep, llm_calls, always, judge)


def _publish(
    working: WorkingDatabase,
    index_folder: Path,
    keep: int,
    llm_calls: pl.DataFrame | None,
    always: bool,
    judge: Judge | None,
) -> Publication:
    kept = kept_publications(index_folder)
    newest = kept[-1] if kept else 0
    number, path = newest + 1, publication_file(index_folder, newest + 1)
    last = None if always else _recorded(working, newest)
    with draft_folder(index_folder) as drafts:
        draft, updated = drafts / "graphrag.duckdb", None
        if last:
            with working.connect() as connection:
                state = state_since(connection, last, _made_with(newest))
            if state and state.digest == last.digest and (found := _whole(working, index_folder, kept)):
                return found
            if state and not state.is_much and _may_grow(publication_file(index_folder, newest), last):
                copy_file(publication_file(index_folder, newest), draft)
                updated = update(working, draft, number, last, _made_with(newest), state, llm_calls)
        if not updated:
            copy = Source(drafts / "working.duckdb", working.limits.beside(working.path))
            working.copy_to(copy.path)
            with reading(copy) as connection:
                revision, digest = last_revision(connection), content_digest(connection)
            if last and last.digest == digest and (found := _whole(working, index_folder, kept)):
                return found
            made, rows = fill(copy, draft, number, digest, llm_calls)
            updated = Update(made._replace(base_bytes=draft.stat().st_size), rows, revision)
        if judge:
            judge(draft)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        move_into_place(draft, path)
    point_to(index_folder, number)
    with working.transaction() as connection:
        record(connection, "publications", updated.made)
        set_mark(connection, READER, LOGGED, updated.revision, _made_with(number))
    for old in kept_publications(index_folder)[:-keep]:
        publication_file(index_folder, old).unlink(missing_ok=True)
    return Publication(number, path, True, updated.rows)


def _made_with(number: int) -> str:
    """What changes are logged against: the newest publication, the shape of its tables, and what fills them."""
    return f"{number} {publication_shape()} {__version__}"


def _may_grow(newest: Path, last: Made) -> bool:
    """Whether the newest publication is there and not yet half as large again as it began."""
    return last.base_bytes is not None and newest.stat().st_size <= MAX_GROWTH * last.base_bytes


def delete_publications(index_folder: Path, numbers: Collection[int]) -> None:
    """Delete publications of which at least one is kept. Readers of a deleted one get the newest."""
    with FileLock(lock_file(index_folder, "publishing")):
        if current_number(index_folder) in numbers:
            point_to(index_folder, max(set(kept_publications(index_folder)) - set(numbers)))
        for number in numbers:
            publication_file(index_folder, number).unlink(missing_ok=True)


def intact_publication(working: WorkingDatabase, index_folder: Path) -> Publication | None:
    """The newest publication, if it was the last one written, and is whole; else None.

    Repairs pointer and link if they do not lead to an intact publication.
    """
    with FileLock(lock_file(index_folder, "publishing")):
        kept = kept_publications(index_folder)
        last = working.read("SELECT max(number) FROM publications").item()
        return _whole(working, index_folder, kept) if kept and kept[-1] == last else None


def _whole(working: WorkingDatabase, index_folder: Path, kept: list[int]) -> Publication | None:
    """The newest publication, unless its file is damaged; repairs pointer and link."""
    path = publication_file(index_folder, kept[-1])
    limits = working.limits.beside(working.path)
    rows = rows_of(path, limits)
    if rows is None:
        return None
    _repair(index_folder, kept, limits)
    return Publication(kept[-1], path, False, rows)


def _repair(index_folder: Path, kept: list[int], limits: Limits) -> None:
    """Make pointer and link lead to one intact publication: that of the pointer, which a rollback may have set.

    Of the `kept` ones the newest is known to be intact.
    """
    current = current_number(index_folder)
    if current not in kept[:-1] or not rows_of(publication_file(index_folder, current), limits):
        current = kept[-1]
    if not points_to(index_folder, current):
        point_to(index_folder, current)


def _recorded(working: WorkingDatabase, number: int) -> Made | None:
    """How a publication was made, as recorded; None if it is not."""
    # Not from the file: a reader in this process may have it open with another configuration.
    found = working.read(
        "SELECT number, content_digest, base, base_bytes FROM publications WHERE number = $number", {"number": number}
    ).rows()
    return Made(*found[0]) if found else None
