"""Publication: a new compact file shaped for reading, switched in atomically.

Readers open a published file read-only. They never wait for a writer, never see a half-built index, and keep
what they have open. A publication with the content of the newest one is not made.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import polars as pl
from filelock import FileLock

from graphrag_assets import __version__
from graphrag_assets.errors import StoreError
from graphrag_assets.store.postings import write_postings
from graphrag_assets.store.published import POINTER, STABLE_NAME
from graphrag_assets.store.published_schema import BASE, PUBLISHED, SEARCH
from graphrag_assets.store.working import CONNECTION_CONFIG, WorkingDatabase

FOLDER = "publications"
_OPERATIONAL = {"batch_state", "index_runs", "index_errors"}


@dataclass(frozen=True, slots=True)
class Publication:
    """A published file: its number, its path, whether this call made it, and the rows of each table."""

    number: int
    path: Path
    is_new: bool
    rows: dict[str, int]


def publish(
    working: WorkingDatabase, index_folder: Path, keep: int = 3, books: pl.DataFrame | None = None
) -> Publication:
    """Publish the working database into `index_folder`; keep the last `keep` publications.

    `books`: the ledger's, as `Ledger.frame` gives them; they become the table llm_calls.
    """
    folder = index_folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(index_folder / "publishing.lock"):  # two at once would give two files one number
        return _publish(working, index_folder, folder, keep, books)


def _publish(
    working: WorkingDatabase, index_folder: Path, folder: Path, keep: int, books: pl.DataFrame | None
) -> Publication:
    newest = max(_numbers(folder), default=0)
    with TemporaryDirectory(dir=index_folder, prefix=".publishing-") as scratch:
        copy, draft = Path(scratch) / "working.duckdb", Path(scratch) / "graphrag.duckdb"
        working.copy_to(copy)
        digest, rows = _build(copy, draft, newest + 1, books)
        if newest and _recorded_digest(working, newest) == digest:
            point_to(index_folder, newest)
            return Publication(newest, _file(folder, newest), False, rows)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(_file(folder, newest + 1))
    point_to(index_folder, newest + 1)
    with working.transaction() as connection:
        _record(connection, "publications", newest + 1, digest)
    for number in sorted(_numbers(folder))[:-keep]:
        _file(folder, number).unlink(missing_ok=True)
    return Publication(newest + 1, _file(folder, newest + 1), True, rows)


def roll_back(index_folder: Path, number: int) -> None:
    """Make an earlier publication, or a later one again, the current one.

    Raises:
        StoreError: it is not kept any more.
    """
    folder = index_folder / FOLDER
    if number not in (kept := sorted(_numbers(folder))):
        raise StoreError(
            f"Publication {number} is not there. Kept are {', '.join(map(str, kept)) or 'none'}; "
            "GRAPHRAG_KEEP_PUBLICATIONS says how many."
        )
    with FileLock(index_folder / "publishing.lock"):
        point_to(index_folder, number)


def point_to(index_folder: Path, number: int) -> None:
    """Make publication `number` the current one: the pointer file, then the stable name."""
    target = Path(FOLDER) / _file(Path(), number)
    pointer = index_folder / f".{POINTER}.new"
    pointer.write_text(f"{target.as_posix()}\n")
    pointer.replace(index_folder / POINTER)
    link = index_folder / f".{STABLE_NAME}.new"
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    link.replace(index_folder / STABLE_NAME)


def _file(folder: Path, number: int) -> Path:
    return folder / f"graphrag-{number}.duckdb"


def _numbers(folder: Path) -> Iterator[int]:
    return (int(path.stem.removeprefix("graphrag-")) for path in folder.glob("graphrag-*.duckdb"))


def _recorded_digest(working: WorkingDatabase, number: int) -> str | None:
    # From the working database: a reader in this process may hold the published file open in its own way.
    digests = working.read("SELECT content_digest FROM publications WHERE number = $number", {"number": number})
    return digests.item() if digests.height else None


def _record(connection: duckdb.DuckDBPyConnection, table: str, number: int, digest: str) -> None:
    connection.execute(f"DELETE FROM {table} WHERE number = $number", {"number": number})
    connection.execute(
        f"INSERT INTO {table} VALUES ($number, $now, $digest, $version)",
        {
            "number": number,
            "now": datetime.now(UTC).replace(tzinfo=None),
            "digest": digest,
            "version": __version__,
        },
    )


_BOOKS = """
INSERT INTO llm_calls BY NAME
SELECT * REPLACE (created_at[:26]::TIMESTAMP AS created_at) FROM books ORDER BY created_at, key
"""


def _build(copy: Path, draft: Path, number: int, books: pl.DataFrame | None) -> tuple[str, dict[str, int]]:
    """Fill `draft` from the copy of the working database; returns the content digest and rows per table."""
    with duckdb.connect(str(draft), config=CONNECTION_CONFIG) as connection:
        connection.execute(f"ATTACH '{str(copy).replace(chr(39), chr(39) * 2)}' AS working (READ_ONLY)")
        row = connection.execute("SELECT max(len(vector)) FROM working.embeddings").fetchone()
        dimensions = (row and row[0]) or 1
        connection.execute("BEGIN")
        for table in PUBLISHED:
            connection.execute(table.ddl().replace("{dimensions}", str(dimensions)))
        connection.execute(files("graphrag_assets.store").joinpath("sql/publish.sql").read_text())
        write_postings(connection)
        if books is not None:
            connection.register("books", books)
            connection.execute(_BOOKS)
            connection.unregister("books")
        digest = _content_digest(connection)
        _record(connection, "publication", number, digest)
        connection.execute("COMMIT")
        rows = {table.name: _count(connection, table.name) for table in PUBLISHED}
        connection.execute("DETACH working")
        connection.execute("CHECKPOINT")
    return digest, rows


def _count(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    row = connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()
    return int(row[0]) if row else 0


def _content_digest(connection: duckdb.DuckDBPyConnection) -> str:
    """One hash over all rows of all index tables, whatever their order."""
    names = [table.name for table in (*BASE, *SEARCH) if table.name not in _OPERATIONAL]
    # The sum of row hashes does not depend on the order of rows; positions of tables tell them apart.
    parts = " UNION ALL ".join(
        f'SELECT {place} AS place, sum(md5_number_lower(t::VARCHAR)::HUGEINT) AS total FROM "{name}" AS t'
        for place, name in enumerate(names)
    )
    row = connection.execute(
        f"SELECT md5(string_agg(place || ':' || total, ',' ORDER BY place)) FROM ({parts})"
    ).fetchone()
    return str(row[0]) if row else ""
