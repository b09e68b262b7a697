"""The kept publications: list them, switch between them, compare two of them.

The comparison is SQL over both files (`sql/compare.sql`), for any DuckDB shell.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl
from filelock import FileLock

from graphrag_assets.errors import StoreError
from graphrag_assets.store.connections import attached
from graphrag_assets.store.index_files import (
    STABLE_NAME,
    current_number,
    kept_publications,
    lock_file,
    point_to,
    publication_file,
)
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.schema import literal, sql

log = logging.getLogger(__name__)

WORDS = ("current", "previous", "newest", "oldest")


@dataclass(frozen=True, slots=True)
class KeptPublication:
    """A kept publication: its number, file, time, size and rows, and whether it is the current one."""

    number: int
    path: Path
    published_at: datetime
    documents: int
    entities: int
    communities: int
    megabytes: float
    is_current: bool


_CONTENT = """
SELECT max(published_at), (SELECT count(*) FROM file.documents), (SELECT count(*) FROM file.entities),
       (SELECT count(*) FROM file.communities)
FROM file.publication
"""


def list_publications(index_folder: Path) -> list[KeptPublication]:
    """Return the kept publications, oldest first; none before the first."""
    current = current_number(index_folder)
    publications = []
    for number in kept_publications(index_folder):
        path = publication_file(index_folder, number)
        try:
            with attached(file=path) as connection:
                ((when, documents, entities, communities),) = connection.execute(_CONTENT).fetchall()
        except (StoreError, duckdb.Error) as error:
            log.warning("Publication %d is left out: %s", number, str(error).partition("\n")[0])
            continue
        megabytes = path.stat().st_size / 1e6
        is_current = number == current
        publications.append(
            KeptPublication(number, path, when, documents, entities, communities, megabytes, is_current)
        )
    return publications


def roll_back(index_folder: Path, name: str | int) -> tuple[int, bool]:
    """Make a kept publication the current one; `name` as for `resolve`.

    Returns:
        Its number, and whether another one was current.
    """
    with FileLock(lock_file(index_folder, "publishing")):  # a process that publishes deletes old ones
        number, before = resolve(index_folder, str(name)), current_number(index_folder)
        CurrentPublication(publication_file(index_folder, number)).reader().close()
        point_to(index_folder, number)
    return number, number != before


def state_in_words(index_folder: Path, newest: int, is_new: bool) -> str:
    """Return what readers have after a run that has published `newest`, or has found that it has everything already."""
    current = current_number(index_folder)
    if is_new or current in (None, newest):
        return f"{'Published' if is_new else 'Up to date'}: publication {newest}, {index_folder / STABLE_NAME}"
    return (
        f"Nothing is new since publication {newest}, but readers have publication {current} since a rollback. "
        "`graphrag-assets publications rollback newest` goes forward again; so does the next publication with new "
        "content."
    )


def resolve(index_folder: Path, name: str) -> int:
    """Return the number of the publication called `name`: a number, or one of `WORDS`.

    `previous` is the one kept before the current one.
    """
    stored = kept_publications(index_folder)
    if not stored:
        raise StoreError(f"Nothing is published in {index_folder} yet. Run `graphrag-assets index`.")
    current = current_number(index_folder) or stored[-1]
    before = [number for number in stored if number < current]
    words = {"current": current, "newest": stored[-1], "oldest": stored[0], "previous": before[-1] if before else None}
    number = words.get(name, int(name) if name.isdecimal() else None)
    if number not in stored:
        raise StoreError(
            f"There is no publication {name!r}. Kept are {', '.join(map(str, stored))}, the current one is {current}; "
            f"`graphrag-assets publications` takes {', '.join(WORDS)}, too."
        )
    return int(number)


def count_changes(before: Path, after: Path) -> pl.DataFrame:
    """Return how much differs between two published files: the view change_counts of `sql/compare.sql`.

    Rows that are the same in both count as `kept`.
    """
    with attached(before=before, after=after) as connection:
        try:
            connection.execute(sql("compare"))
            return pl.DataFrame(connection.sql("FROM change_counts"))
        except duckdb.Error as error:
            raise StoreError(f"Cannot compare {before} with {after}: {error}") from error


def counts_in_words(counts: pl.DataFrame, what: str) -> str:
    """Return what changed of `what` by the view change_counts, such as "2 added, 1 edited, 40 unchanged"."""
    numbers = dict(counts.filter(what=what).select("change", "n").iter_rows())
    same = numbers.pop("kept", 0)
    unchanged = f"{same:,} kept" if what == "reports" else f"{same:,} unchanged"
    return ", ".join([*(f"{n:,} {change}" for change, n in numbers.items()), *([unchanged] if same else [])]) or "none"


def comparison_sql(before: Path, after: Path) -> str:
    """Return SQL that makes the views of `sql/compare.sql` in any DuckDB shell."""
    attached = (
        f"ATTACH {literal(path.resolve())} AS {name} (READ_ONLY);\n"
        for name, path in (("before", before), ("after", after))
    )
    return "".join(attached) + "\n" + sql("compare") + "\nFROM change_counts;\n"
