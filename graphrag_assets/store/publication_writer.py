"""Publication: a new compact file shaped for reading, switched in atomically.

Readers open a published file read-only. They never wait for a writer, never see a half-built index, and keep
what they have open. A publication with the content of the newest one is not made.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import polars as pl
from filelock import FileLock

from graphrag_assets import __version__
from graphrag_assets.errors import StoreError
from graphrag_assets.languages import language_of
from graphrag_assets.store.binary_quantization import write_signs
from graphrag_assets.store.bm25_index import write_postings
from graphrag_assets.store.macros import macros_sql, write_macros
from graphrag_assets.store.passage_graph import write_passage_graph
from graphrag_assets.store.publication_reader import POINTER, STABLE_NAME, PublishedIndex
from graphrag_assets.store.publication_schema import BASE, PUBLISHED
from graphrag_assets.store.schema import identifier, literal
from graphrag_assets.store.token_counts import write_line_tokens
from graphrag_assets.store.working import WorkingDatabase, is_small
from graphrag_assets.text import count_tokens

FOLDER = "publications"
_DRAFT = ".publishing-"
_REPORTS_AT_ONCE = 10_000
_OPERATIONAL = {"batch_state", "index_runs", "index_errors", "imports"}


@dataclass(frozen=True, slots=True)
class Publication:
    """A published file: its number, its path, whether this call made it, and the rows of each table."""

    number: int
    path: Path
    is_new: bool
    rows: dict[str, int]


def publish(
    working: WorkingDatabase,
    index_folder: Path,
    keep: int = 3,
    books: pl.DataFrame | None = None,
    anew: bool = False,
) -> Publication:
    """Publish the working database into `index_folder`; keep the last `keep` publications.

    `books`: the ledger's, as `Ledger.frame` gives them; they become the table llm_calls.
    `anew`: make a new file even if its index tables are those of the newest publication.
    """
    folder = index_folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(index_folder / "publishing.lock"):  # two at once would give two files one number
        remove_drafts(index_folder)
        fill_languages(working)
        return _publish(working, index_folder, folder, keep, books, anew)


def _publish(
    working: WorkingDatabase, index_folder: Path, folder: Path, keep: int, books: pl.DataFrame | None, anew: bool
) -> Publication:
    newest = max(_numbers(folder), default=0)
    with TemporaryDirectory(dir=index_folder, prefix=_DRAFT) as scratch:
        copy, draft = Path(scratch) / "working.duckdb", Path(scratch) / "graphrag.duckdb"
        working.copy_to(copy)
        digest, made = _content_digest(copy), _file(folder, newest)
        if newest and not anew and _recorded_digest(working, newest) == digest:
            if not (index_folder / STABLE_NAME).is_file():
                point_to(index_folder, newest)  # otherwise people may have gone back to an earlier one, and stay there
            return Publication(newest, made, False, _rows_of(made))
        rows = _build(copy, draft, newest + 1, books, digest)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(_file(folder, newest + 1))
    point_to(index_folder, newest + 1)
    with working.transaction() as connection:
        _record(connection, "publications", newest + 1, digest)
    for number in sorted(_numbers(folder))[:-keep]:
        _file(folder, number).unlink(missing_ok=True)
    return Publication(newest + 1, _file(folder, newest + 1), True, rows)


def fill_languages(working: WorkingDatabase) -> None:
    """Find the language of documents that were loaded before documents had one."""
    lacking = working.read("SELECT id, text FROM documents WHERE language IS NULL")
    if lacking.is_empty():
        return
    found = lacking.select("id", language=pl.Series(map(language_of, lacking["text"]), dtype=pl.String))
    with working.transaction() as connection:
        connection.register("found", found)
        connection.execute("UPDATE documents SET language = f.language FROM found f WHERE documents.id = f.id")
        connection.unregister("found")


def remove_drafts(index_folder: Path) -> None:
    """Remove the folders of publications that crashed. Only behind publishing.lock: a live one looks the same."""
    for draft in index_folder.glob(f"{_DRAFT}*"):
        shutil.rmtree(draft, ignore_errors=True)


def roll_back(index_folder: Path, number: int) -> None:
    """Make an earlier publication, or a later one again, the current one.

    Raises:
        StoreError: it is not kept any more.
    """
    if number not in (kept := kept_publications(index_folder)):
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


def kept_publications(index_folder: Path) -> list[int]:
    """The numbers of the publications that are kept, in order."""
    return sorted(_numbers(index_folder / FOLDER))


def publication_file(index_folder: Path, number: int) -> Path:
    """The file of publication `number`."""
    return _file(index_folder / FOLDER, number)


def _file(folder: Path, number: int) -> Path:
    return folder / f"graphrag-{number}.duckdb"


def _numbers(folder: Path) -> Iterator[int]:
    return (int(path.stem.removeprefix("graphrag-")) for path in folder.glob("graphrag-*.duckdb"))


def _rows_of(file: Path) -> dict[str, int]:
    return dict(PublishedIndex(file).reader().rows(_COUNTS).iter_rows())


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


def _building(copy: Path) -> dict[str, Any]:
    """DuckDB's configuration for work on a copy of the working database."""
    return {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "memory_limit": "4GB",
        **({"threads": 1} if is_small(copy) else {}),
    }


_COUNTS = " UNION ALL ".join(f"SELECT {literal(t.name)}, count(*) FROM {identifier(t.name)}" for t in PUBLISHED)
_PUBLISH = files("graphrag_assets.store").joinpath("sql/publish.sql").read_text()


def _build(copy: Path, draft: Path, number: int, books: pl.DataFrame | None, digest: str) -> dict[str, int]:
    """Fill `draft` from the copy of the working database; returns the rows per table."""
    # Row groups of this size let zone maps find the rows of an entity; only ATTACH can set it. A log would write all
    # rows twice, and a draft that was not finished is thrown away.
    options = "STORAGE_VERSION 'v1.5.0', ROW_GROUP_SIZE 16384, RECOVERY_MODE NO_WAL_WRITES"
    config = _building(copy) | {"temp_directory": str(draft.with_suffix(".spill"))}
    with duckdb.connect(config=config) as connection:
        connection.execute(f"ATTACH {literal(draft)} AS published ({options})")
        connection.execute(f"ATTACH {literal(copy)} AS working (READ_ONLY)")
        connection.execute("USE published")
        ((dimensions,),) = connection.execute("SELECT max(len(vector)) FROM working.embeddings").fetchall()
        create_tables(connection, dimensions or 1)
        _count_report_tokens(connection)
        connection.execute(_PUBLISH)
        write_search_tables(connection)
        if books is not None:
            connection.register("books", books)
            connection.execute(_BOOKS)
            connection.unregister("books")
        _record(connection, "publication", number, digest)
        rows = dict(connection.execute(_COUNTS).fetchall())
        connection.execute("CHECKPOINT published")
    return rows


def _count_report_tokens(connection: duckdb.DuckDBPyConnection) -> None:
    """The temporary table report_tokens (id, content_tokens, summary_tokens) of the working reports."""
    connection.execute("CREATE TEMP TABLE report_tokens (id VARCHAR, content_tokens BIGINT, summary_tokens BIGINT)")
    query = "SELECT id, full_content, summary FROM working.community_reports ORDER BY id LIMIT $n OFFSET $offset"
    offset = 0
    while (part := connection.sql(query, params={"n": _REPORTS_AT_ONCE, "offset": offset}).pl()).height:
        counted = part.select(
            "id",
            content_tokens=pl.Series(count_tokens(part["full_content"].fill_null(""))),
            summary_tokens=pl.Series(count_tokens(part["summary"].fill_null(""))),
        )
        connection.register("counted", counted)
        connection.execute("INSERT INTO report_tokens FROM counted")
        connection.unregister("counted")
        offset += _REPORTS_AT_ONCE


def create_tables(connection: duckdb.DuckDBPyConnection, dimensions: int) -> None:
    """The empty tables of a published index, for vectors of so many dimensions."""
    for table in PUBLISHED:
        connection.execute(table.ddl().replace("{dimensions}", str(dimensions)))


def write_search_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """What is derived from the texts and vectors of the published index open in `connection`; macros and views."""
    write_line_tokens(connection)
    write_postings(connection)
    write_passage_graph(connection)
    write_signs(connection)
    write_macros(connection)


_COPIED = [table.name for table in BASE if table.name not in _OPERATIONAL]
_DIGESTED = {name: f"FROM {identifier(name)}" for name in (*_COPIED, "entity_positions")} | {
    "numbers": """
        SELECT table_name, id, human_readable_id FROM numbers
        WHERE (table_name = 'text_units' AND id IN (SELECT id FROM text_units))
           OR (table_name = 'documents' AND id IN (SELECT id FROM documents))
           OR (table_name = 'covariates' AND id IN (SELECT id FROM covariates))""",
    # A vector is hashed first: written out in digits, vectors would take longer than all else.
    "embeddings": """
        SELECT kind, id, model, hash(vector) FROM embeddings
        WHERE (kind = 'text_unit' AND id IN (SELECT id FROM text_units))
           OR (kind = 'entity' AND id IN (SELECT id FROM entities))
           OR (kind = 'community_report' AND id IN (SELECT id FROM community_reports))""",
}
"""What of the working database `publish.sql` reads, but for what tells of runs; the rest of it is derived."""


def _content_digest(copy: Path) -> str:
    """One hash over the shape of the index and all rows it is published from, in any order.

    Of the working database: to find that nothing has changed, nothing is built.
    """
    # Macros belong to the shape: a mended one reaches readers with the next publication, whatever else has changed.
    shape = hashlib.md5("".join([*(table.ddl() for table in PUBLISHED), _PUBLISH, macros_sql()]).encode()).hexdigest()
    # The sum of row hashes does not depend on the order of rows; positions of tables tell them apart.
    parts = " UNION ALL ".join(
        f"SELECT {place} AS place, sum(md5_number_lower(t::VARCHAR)::HUGEINT) AS total FROM ({relation}) AS t"
        for place, relation in enumerate(_DIGESTED.values())
    )
    with duckdb.connect(str(copy), read_only=True, config=_building(copy)) as connection:
        ((digest,),) = connection.execute(
            f"SELECT md5($shape || string_agg(place || ':' || total, ',' ORDER BY place)) FROM ({parts})",
            {"shape": shape},
        ).fetchall()
    return str(digest)
