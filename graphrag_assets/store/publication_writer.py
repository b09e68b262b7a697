"""Writes a publication: a new compact file for readers, which takes the place of the previous one atomically.

Readers open a publication read-only. They never wait for a writer, never see a partial index, and keep the file they
have open. Without a change of content, no new publication is written.
"""

import functools
import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import polars as pl
from filelock import FileLock

from graphrag_assets import __version__, text
from graphrag_assets.errors import StoreError
from graphrag_assets.languages import language_of
from graphrag_assets.store.binary_quantization import write_binary_codes
from graphrag_assets.store.bm25_index import write_bm25_index
from graphrag_assets.store.change_log import remove_marks
from graphrag_assets.store.connections import NO_EXTENSIONS, execute_with
from graphrag_assets.store.drafts import draft_folder, make_folder, move_into_place
from graphrag_assets.store.interrupts import interrupts_raised
from graphrag_assets.store.locks import lock_file
from graphrag_assets.store.macros import macros_sql, write_macros
from graphrag_assets.store.passage_graph import write_passage_graph
from graphrag_assets.store.publication_files import (
    FOLDER,
    current_number,
    kept_publications,
    point_to,
    points_to,
    publication_file,
)
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.publication_schema import MAIN, OPERATIONS, PUBLISHED
from graphrag_assets.store.records_file import INSERT_LLM_CALLS
from graphrag_assets.store.schema import WORKING, identifier, literal
from graphrag_assets.store.token_counts import write_token_counts
from graphrag_assets.store.working import WorkingDatabase, is_small

_EMPTY = "empty-publication-"
_REPORTS_AT_ONCE = 10_000
_OPERATIONAL = {"batch_state", "index_runs", "imports"}


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
) -> Publication:
    """Publish the working database into `index_folder`; keep the last `keep` publications.

    `llm_calls`: the ledger's entries, as `Ledger.frame` returns them; they become the table llm_calls.
    `always`: write a new file even if its content is that of the newest publication.
    """
    make_folder(index_folder / FOLDER)
    with FileLock(lock_file(index_folder, "publishing")):  # two at the same time would give two files one number
        fill_languages(working)
        return _publish(working, index_folder, keep, llm_calls, always)


def _publish(
    working: WorkingDatabase, index_folder: Path, keep: int, llm_calls: pl.DataFrame | None, always: bool
) -> Publication:
    kept = kept_publications(index_folder)
    newest = max(kept, default=0)
    with draft_folder(index_folder) as drafts:
        copy, draft = drafts / "working.duckdb", drafts / "graphrag.duckdb"
        working.copy_to(copy)
        digest, dimensions = _digest_and_dimensions(copy)
        is_same = newest and not always and _recorded_digest(working, newest) == digest
        if is_same and (found := _whole(index_folder, kept)):
            return found
        number, path = newest + 1, publication_file(index_folder, newest + 1)
        _copy_empty(index_folder, dimensions, _options(copy), draft)
        rows = _fill(copy, draft, number, llm_calls, digest)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        move_into_place(draft, path)
    point_to(index_folder, number)
    with working.transaction() as connection:
        _record(connection, "publications", number, digest)
    for old in kept_publications(index_folder)[:-keep]:
        publication_file(index_folder, old).unlink(missing_ok=True)
    return Publication(number, path, True, rows)


def intact_publication(working: WorkingDatabase, index_folder: Path) -> Publication | None:
    """The newest publication, if it was the last one written, and is whole; else None.

    Lets pointer and link lead to a whole publication.
    """
    with FileLock(lock_file(index_folder, "publishing")):
        kept = kept_publications(index_folder)
        last = working.read("SELECT max(number) FROM publications").item()
        return _whole(index_folder, kept) if kept and kept[-1] == last else None


def _whole(index_folder: Path, kept: list[int]) -> Publication | None:
    """The newest publication, unless its file is damaged; mends pointer and link."""
    path = publication_file(index_folder, kept[-1])
    rows = _rows_of(path)
    if rows is None:
        return None
    _mend(index_folder, kept)
    return Publication(kept[-1], path, False, rows)


def _mend(index_folder: Path, kept: list[int]) -> None:
    """Let pointer and link lead to one whole publication: the pointer's, which may be an earlier one on purpose.

    Of the `kept` ones the newest is known to be whole.
    """
    current = current_number(index_folder)
    if current not in kept[:-1] or not _rows_of(publication_file(index_folder, current)):
        current = kept[-1]
    if not points_to(index_folder, current):
        point_to(index_folder, current)


def _rows_of(path: Path) -> dict[str, int] | None:
    """The rows of each table of a publication; None if the file is damaged."""
    try:
        return dict(CurrentPublication(path).reader().rows(_COUNTS).iter_rows())
    except (StoreError, duckdb.Error):
        return None


def fill_languages(working: WorkingDatabase) -> None:
    """Detect the language of documents that were loaded before documents had one."""
    lacking = working.read("SELECT id, text FROM documents WHERE language IS NULL")
    if lacking.is_empty():
        return
    found = lacking.select("id", language=pl.Series(map(language_of, lacking["text"]), dtype=pl.String))
    with working.transaction() as connection:
        remove_marks(connection)
        update = "UPDATE documents SET language = f.language FROM found f WHERE documents.id = f.id"
        execute_with(connection, update, found=found)


def _recorded_digest(working: WorkingDatabase, number: int) -> str | None:
    # Not from the file: a reader in this process may have it open with another configuration.
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


_COUNTS = " UNION ALL ".join(f"SELECT {literal(t.name)}, count(*) FROM {t.sql_name}" for t in PUBLISHED)
_PUBLISH = files("graphrag_assets.store").joinpath("sql/publish.sql").read_text()


def _configuration(copy: Path) -> dict[str, Any]:
    """DuckDB's configuration for work on a copy of the working database."""
    return {
        **NO_EXTENSIONS,
        "memory_limit": "4GB",
        **({"threads": 1} if is_small(copy) else {}),
    }


def _copy_empty(index_folder: Path, dimensions: int, options: str, draft: Path) -> None:
    """Start `draft` as a publication without rows.

    Creating tables, comments and macros takes longer than filling them for a small index, so an empty publication is
    kept in the index folder, under a name that changes with everything it is made from.
    """
    versions = (duckdb.__version__, sys.version)
    made_from = (publication_shape(), dimensions, options, text.FOLDED, text.SPELLED_OUT, *versions)
    kept = index_folder / f"{_EMPTY}{hashlib.md5(repr(made_from).encode()).hexdigest()}.duckdb"
    if not kept.exists() or not _is_whole(kept):
        for outdated in index_folder.glob(f"{_EMPTY}*"):
            outdated.unlink()
        draft.write_bytes(_empty(dimensions, options))
        draft.replace(kept)
    shutil.copyfile(kept, draft)


def _is_whole(database: Path) -> bool:
    try:
        with duckdb.connect(str(database), read_only=True, config=dict(NO_EXTENSIONS)):
            return True
    except duckdb.Error:
        return False


@functools.cache
def _empty(dimensions: int, options: str) -> bytes:
    """The file of a publication without rows."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "empty.duckdb"
        with duckdb.connect(config=_configuration(file)) as connection:
            connection.execute(f"ATTACH {literal(file)} AS published ({options}); USE published")
            create_tables(connection, dimensions)
            connection.execute("CHECKPOINT published")
        return file.read_bytes()


def _options(copy: Path) -> str:
    """The options of the publication's file, which only ATTACH can set.

    Row groups of this size let zone maps find the rows of an entity. A log would write all rows twice, and an
    unfinished draft is thrown away. Blocks of 16 kB make the file of a small index three times smaller; that of a large
    one would be a fifth larger, and slower to scan.
    """
    blocks = 16_384 if is_small(copy) else 262_144
    return f"STORAGE_VERSION 'v1.5.0', ROW_GROUP_SIZE 16384, RECOVERY_MODE NO_WAL_WRITES, BLOCK_SIZE {blocks}"


def _fill(copy: Path, draft: Path, number: int, llm_calls: pl.DataFrame | None, digest: str) -> dict[str, int]:
    """Fill `draft` from the copy of the working database; returns the rows per table."""
    config = _configuration(copy) | {"temp_directory": str(draft.with_suffix(".spill"))}
    with duckdb.connect(config=config) as connection:
        connection.execute(f"ATTACH {literal(draft)} AS published ({_options(copy)})")
        connection.execute(f"ATTACH {literal(copy)} AS working (READ_ONLY)")
        connection.execute("USE published")
        _count_report_tokens(connection)
        connection.execute(_PUBLISH)
        write_search_tables(connection)
        if llm_calls is not None:
            execute_with(connection, INSERT_LLM_CALLS, incoming_calls=llm_calls)
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
            content_tokens=pl.Series(text.count_tokens(part["full_content"].fill_null(""))),
            summary_tokens=pl.Series(text.count_tokens(part["summary"].fill_null(""))),
        )
        execute_with(connection, "INSERT INTO report_tokens FROM counted", counted=counted)
        offset += _REPORTS_AT_ONCE


def create_tables(connection: duckdb.DuckDBPyConnection, dimensions: int) -> None:
    """Create the empty tables, macros and views of a publication, for vectors of this many dimensions."""
    ddl = "".join(table.ddl() for table in PUBLISHED).replace("{dimensions}", str(dimensions))
    connection.execute(f"BEGIN;{ddl}COMMIT")
    write_macros(connection)


def write_search_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the tables derived from the texts and vectors of the publication open in `connection`."""
    write_token_counts(connection)
    write_bm25_index(connection)
    write_passage_graph(connection)
    write_binary_codes(connection)


_COPIED = {table.name for table in (*MAIN, *OPERATIONS)} & {table.name for table in WORKING} - _OPERATIONAL
_DIGESTED = {name: f"FROM {identifier(name)}" for name in sorted(_COPIED | {"entity_positions"})} | {
    "index_errors": "SELECT * EXCLUDE (first_seen) FROM index_errors",
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
"""By table, what `publish.sql` reads of the working database, records of runs excluded; the rest is derived."""


def _digest_and_dimensions(copy: Path) -> tuple[str, int]:
    """One hash over the shape of a publication and all rows it is made from, in any order; dimensions of vectors.

    It reads the working database only: detecting that nothing has changed builds nothing.
    """
    # The sum of row hashes does not depend on the order of rows; positions tell the tables apart.
    parts = " UNION ALL ".join(
        f"SELECT {place} AS place, sum(md5_number_lower(t::VARCHAR)::HUGEINT) AS total FROM ({relation}) AS t"
        for place, relation in enumerate(_DIGESTED.values())
    )
    with duckdb.connect(str(copy), read_only=True, config=_configuration(copy)) as connection:
        ((digest, dimensions),) = connection.execute(
            f"SELECT md5($shape || string_agg(place || ':' || total, ',' ORDER BY place)), "
            f"(SELECT max(len(vector)) FROM embeddings) FROM ({parts})",
            {"shape": publication_shape()},
        ).fetchall()
    return str(digest), dimensions or 1


@functools.cache
def publication_shape() -> str:
    """Hash of tables, macros and the SQL that fills them: a changed macro makes a new publication."""
    return hashlib.md5("".join([*(table.ddl() for table in PUBLISHED), _PUBLISH, macros_sql()]).encode()).hexdigest()
