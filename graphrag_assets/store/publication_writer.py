"""Writes a publication: a new compact file for readers, which takes the place of the previous one atomically.

It has each published table, in its reading order, from the index. Readers open a publication read-only. They never wait
for a writer, never see a partial index, and keep the file they have open. Without a change of content, no new
publication is written.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

import duckdb
import polars as pl
from filelock import FileLock

from graphrag_assets import __version__
from graphrag_assets.errors import StoreError
from graphrag_assets.ids import stable_id
from graphrag_assets.store import schema
from graphrag_assets.store.bm25_index import write_bm25_index
from graphrag_assets.store.connections import (
    ROW_GROUPS,
    ArrowStream,
    attached,
    execute_in_order,
    interrupts_raised,
    is_below,
    one_value,
    opened,
)
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.index_files import (
    current_number,
    kept_publications,
    lock_file,
    point_to,
    publication_file,
    replacing,
)
from graphrag_assets.store.macros import macros_source, write_macros
from graphrag_assets.store.passage_graph import write_passage_graph
from graphrag_assets.store.schema import PUBLISHED, SCHEMA_VERSION, identifier, sql
from graphrag_assets.store.token_counts import count_new, counted_columns, insert_counted

_PUBLISH = sql("publish").replace("{supersession}", sql("supersession")).replace("{predicates}", sql("predicates"))
_VECTORS = """
INSERT INTO embeddings BY NAME
WITH numbers AS (
    SELECT 'community_report' AS kind, id, human_readable_id AS number FROM working.community_reports
    UNION ALL SELECT 'entity', id, human_readable_id FROM working.entities
    UNION ALL SELECT 'text_unit', id, human_readable_id FROM working.numbers SEMI JOIN working.text_units USING (id)
    WHERE table_name = 'text_units'
)
SELECT kind, number, id, model, vector FROM working.embeddings JOIN numbers USING (kind, id)
"""
_DIMENSIONS = "SELECT coalesce(max(len(vector)), 1) FROM working.embeddings"  # of an index without vectors 1
_COPIED = ("entity_aliases", "entity_candidates", "citations", "index_errors")
_CALLS = """
INSERT INTO llm_calls BY NAME
SELECT * EXCLUDE (unit) REPLACE (created_at[:26]::TIMESTAMP AS created_at), unit AS text_unit_id
FROM calls
"""
DIGESTED = (
    *(*schema.BATCH_TABLES, *schema.GLOBAL_TABLES),
    *(schema.NUMBERS, schema.INDEX_ERRORS, schema.INDEX_SETTINGS, schema.PROMPT_PROFILE),
)
"""The tables of the index that a publication is made from, but for the records of runs."""
_COUNTS = " UNION ALL ".join(f"SELECT count(*) FROM {table.sql_name}" for table in PUBLISHED)


class Record(NamedTuple):
    """The record of a publication: the columns of the table publication."""

    number: int
    published_at: datetime
    content_digest: str
    version: str = __version__
    schema_version: str = SCHEMA_VERSION


def record(connection: duckdb.DuckDBPyConnection, row: Record) -> None:
    """Write the row of a publication into the database in use, in place of one with its number."""
    connection.execute("DELETE FROM publication WHERE number = $number", {"number": row.number})
    values = ", ".join(f"${name} AS {name}" for name in Record._fields)
    connection.execute(f"INSERT INTO publication BY NAME SELECT {values}", row._asdict())


def fill(connection: duckdb.DuckDBPyConnection, number: int, digest: str, llm_calls: pl.DataFrame | None) -> Record:
    """Fill an empty publication, which is in use, from the index, which is attached as `working`.

    What is counted of new texts is kept in the index. `llm_calls`: as `Ledger.frame` returns them.
    """
    row = Record(number, datetime.now(UTC).replace(tzinfo=None), digest)
    create_tables(connection, one_value(connection, _DIMENSIONS), row)
    execute_in_order(connection, _VECTORS)
    # Uncompressed: vectors hardly compress, and are compared a third faster. The setting applies when blocks are
    # written, hence the checkpoint.
    connection.execute("SET force_compression = 'uncompressed'; CHECKPOINT; RESET force_compression")
    execute_in_order(connection, _PUBLISH)
    counted = counted_columns(connection)
    count_new(connection, counted)
    for name in dict.fromkeys(column.table for column in counted):
        insert_counted(connection, name, counted)
    for table in PUBLISHED:
        if table.name in _COPIED or table.schema == "operations":
            copy = f"INSERT INTO {table.sql_name} BY NAME FROM working.{identifier(table.name)} ORDER BY {table.order}"
            connection.execute(copy)
    if llm_calls is not None:
        connection.register("calls", ArrowStream(llm_calls))
        execute_in_order(connection, _CALLS)
        connection.unregister("calls")
    write_bm25_index(connection)
    write_passage_graph(connection)
    return row


def create_tables(connection: duckdb.DuckDBPyConnection, dimensions: int, row: Record | None = None) -> None:
    """Create the tables, macros and views of a publication, for vectors of this many dimensions, and its record."""
    ddl = "".join(table.ddl() for table in PUBLISHED).replace("{dimensions}", str(dimensions))
    connection.execute(f"BEGIN;{ddl}COMMIT")
    if row:
        record(connection, row)
    write_macros(connection)


def content_digest(working: IndexDatabase) -> str:
    """One hash over the shape of a publication and all rows of the index that it is made from, in any order.

    Records of runs do not count. Another version of DuckDB may hash otherwise, and publish the same content again.
    """
    versions = working.content_versions(table.name for table in DIGESTED)
    return stable_id("publication", publication_shape(), *(f"{name} {versions[name]}" for name in sorted(versions)))


@cache
def publication_shape() -> str:
    """Hash of tables, macros and the SQL that fills them: a changed macro makes a new publication."""
    shape = [*(table.ddl() for table in PUBLISHED), _PUBLISH, macros_source(), sql("graphrag_v3")]
    return hashlib.md5("".join(shape).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Publication:
    """A published file: its number, its path, and whether this call made it."""

    number: int
    path: Path
    is_new: bool


@interrupts_raised()
def publish(
    working: IndexDatabase,
    index_folder: Path,
    keep: int = 3,
    llm_calls: pl.DataFrame | None = None,
    always: bool = False,
) -> Publication:
    """Publish the working database into `index_folder`; keep the last `keep` publications.

    `llm_calls`: the ledger's entries, as `Ledger.frame` returns them; they become the table llm_calls.
    `always`: write a new file even if its content is that of the newest publication.
    """
    with FileLock(lock_file(index_folder, "publishing")):  # two at the same time would give two files one number
        numbers = kept_publications(index_folder)
        number = max(numbers, default=0) + 1
        path = publication_file(index_folder, number)
        digest = content_digest(working)
        same = "SELECT count(*) FROM publication WHERE number = $number AND content_digest = $digest"
        is_known = working.read(same, {"number": number - 1, "digest": digest}).item()
        if is_known and not always and (whole := _whole(index_folder, numbers)):
            return whole
        with (
            replacing(path) as draft,
            working.connect() as connection,
            opened(connection, draft, "published", _options(working)),
        ):
            row = fill(connection, number, digest, llm_calls)
            connection.execute("CHECKPOINT published")
        point_to(index_folder, number)
        with working.transaction() as connection:
            record(connection, row)
        for old in kept_publications(index_folder)[:-keep]:
            publication_file(index_folder, old).unlink(missing_ok=True)
        return Publication(number, path, True)


def _options(working: IndexDatabase) -> str:
    """Return the options of the publication's file, which only ATTACH can set.

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
    """Return the newest publication, if it was the last one written, and is whole; else None.

    Repairs the link if it does not lead to an intact publication.
    """
    with FileLock(lock_file(index_folder, "publishing")):
        numbers = kept_publications(index_folder)
        last = working.read("SELECT max(number) FROM publication").item()
        return _whole(index_folder, numbers) if numbers and numbers[-1] == last else None


def _whole(index_folder: Path, numbers: list[int]) -> Publication | None:
    """Return newest publication, unless its file is damaged. Makes the link lead to an intact publication."""
    newest = publication_file(index_folder, numbers[-1])
    if not _is_whole(newest):
        return None
    current = current_number(index_folder)  # a rollback may have set another one
    is_another = current in numbers[:-1] and _is_whole(publication_file(index_folder, current))
    if not is_another and current != numbers[-1]:
        point_to(index_folder, numbers[-1])
    return Publication(numbers[-1], newest, False)


def _is_whole(publication: Path) -> bool:
    """Whether all tables of a publication can be read."""
    try:
        with attached(published=publication) as connection:
            connection.execute("USE published").execute(_COUNTS).fetchall()
    except (StoreError, duckdb.Error):
        return False
    return True
