"""The content of a publication: filled from a copy of the working database, or brought up to date by what changed."""

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets import __version__
from graphrag_assets.ids import stable_id
from graphrag_assets.store.change_log import LOGGED, Changed, changes_since_mark
from graphrag_assets.store.connections import (
    ROW_GROUPS,
    Limits,
    execute_with,
    in_memory,
    memory_errors,
    one_value,
    opened,
)
from graphrag_assets.store.macros import macros_sql, name_after_publication, views_sql, write_macros
from graphrag_assets.store.publication_schema import (
    LLM_CALLS,
    MAIN,
    OPERATIONS,
    PUBLISHED,
    SCHEMA_VERSION,
)
from graphrag_assets.store.records_file import CALLS_AS_PUBLISHED
from graphrag_assets.store.schema import Table, identifier, literal
from graphrag_assets.store.search_tables import (
    SearchedBefore,
    searched_before,
    update_search_tables,
    write_search_tables,
)
from graphrag_assets.store.supersession import PREDICATES, SUPERSESSION
from graphrag_assets.store.working import WorkingDatabase, is_small, suits_one_thread

READER = "publication"
"""The reader of the change log whose mark is that of the newest publication."""
MAX_CHANGED = 0.2
"""A larger share of touched rows is published from nothing: that takes no longer, and leaves a compact file."""
_OPTIONS = f"{ROW_GROUPS}, RECOVERY_MODE NO_WAL_WRITES"
# By temporary table of touched ids, the working table and its column.
_TOUCHED = {
    **{name: (name, "id") for name in LOGGED - {"community_history"}},
    "community_members": ("community_members", "entity_id"),
    "citations": ("citations", "report_id"),
}
_WEIGHED = ("documents", "text_units", "entities", "relationships", "covariates", "entity_mentions", "embeddings")
_COPIED_WHOLE = ("entity_aliases", "entity_candidates", "index_errors", *(table.name for table in OPERATIONS))
_SQL = files("graphrag_assets.store").joinpath("sql")
_PUBLISH, _PUBLISH_MENTIONS = (_SQL.joinpath(name).read_text() for name in ("publish.sql", "publish_mentions.sql"))
_PUBLISH_FACTS = (
    _SQL.joinpath("publish_facts.sql")
    .read_text()
    .replace("{supersession}", SUPERSESSION)
    .replace("{predicates}", PREDICATES)
)
_NUMBER_VECTORS = """
CREATE TEMP TABLE numbered_vectors AS
WITH numbers AS (
    SELECT 'community_report' AS kind, id, human_readable_id AS number FROM working.community_reports
    UNION ALL SELECT 'entity', id, human_readable_id FROM working.entities
    UNION ALL SELECT 'text_unit', id, human_readable_id FROM working.numbers SEMI JOIN working.text_units USING (id)
    WHERE table_name = 'text_units'
)
SELECT e.stored_at, kind, n.number, row_number() OVER (ORDER BY kind, n.number) AS place
FROM (SELECT rowid AS stored_at, kind, id FROM working.embeddings SEMI JOIN touched_embeddings USING (id)) e
JOIN numbers n USING (kind, id)
"""
# By rowid: a join by id would read all vectors.
_VECTORS = """
INSERT INTO embeddings BY NAME
SELECT e.kind, n.number, e.id, e.model, e.vector FROM working.embeddings e
JOIN (FROM numbered_vectors WHERE place BETWEEN $first AND $last) n ON n.stored_at = e.rowid ORDER BY place
"""
_DIMENSIONS = "SELECT coalesce(max(len(vector)), 1) FROM working.embeddings"  # of an index without vectors 1
_VECTORS_PER_PART = 50_000  # more are sorted in slices that fit in memory
_CLAIMS = """
CREATE TEMP TABLE taken_back AS FROM working.claims_taken_back;
CREATE TEMP VIEW claims AS FROM working.covariates ANTI JOIN taken_back USING (id);
"""
_FIND_TOUCHED = _SQL.joinpath("touched.sql").read_text()
ROWS_PER_TABLE = " UNION ALL ".join(f"SELECT {literal(t.name)}, count(*) FROM {t.sql_name}" for t in PUBLISHED)
"""Query for name and number of rows of each table of a publication."""


class Source(NamedTuple):
    """What a publication is made from: a copy of the working database, and the limits of computing with it."""

    path: Path
    limits: Limits


class Made(NamedTuple):
    """How a publication was made.

    `base`: the number of the publication made from nothing that its file began as a copy of, or its own; `base_bytes`:
    the size of that file, None if it is its own; `community_revision`: the last revision of community_history in it.
    """

    number: int
    digest: str
    base: int
    base_bytes: int | None = None
    published_at: datetime | None = None
    community_revision: int | None = None


def record(connection: duckdb.DuckDBPyConnection, table: str, made: Made) -> None:
    """Write the row of a publication into `table`, in place of one with its number."""
    connection.execute(f"DELETE FROM {table} WHERE number = $number", {"number": made.number})
    connection.execute(
        f"INSERT INTO {table} "
        "VALUES ($number, $published_at, $digest, $version, $base, $base_bytes, $community_revision, $schema_version)",
        {**made._asdict(), "version": __version__, "schema_version": SCHEMA_VERSION},
    )


def rows_of(publication: Path, limits: Limits) -> dict[str, int] | None:
    """The rows of each table of a publication; None if the file is damaged."""
    try:
        with in_memory(limits, one_thread=True) as connection, opened(connection, publication, "published"):
            return dict(connection.execute(ROWS_PER_TABLE).fetchall())
    except duckdb.Error:
        return None


def _options(source: Source) -> str:
    """The options of the publication's file, which only ATTACH can set.

    Row groups of this size let zone maps find the rows of an entity. A log would write all rows twice, and an
    unfinished draft is thrown away. Blocks of 16 kB make the file of a small index three times smaller; that of a large
    one would be a fifth larger, and slower to scan.
    """
    return f"{_OPTIONS}, BLOCK_SIZE {16_384 if is_small(source.path) else 262_144}"


def fill(
    source: Source, draft: Path, number: int, digest: str, llm_calls: pl.DataFrame | None
) -> tuple[Made, dict[str, int]]:
    """Make the publication `draft` from a copy of the working database; returns its record and rows per table."""
    small = is_small(source.path)
    draft.unlink(missing_ok=True)  # an update that was given up
    with (
        memory_errors(source.limits),
        in_memory(source.limits, small) as connection,
        opened(connection, source.path, "working"),
        opened(connection, draft, "published", _options(source)),
    ):
        create_tables(connection, one_value(connection, _DIMENSIONS))
        _create_touched(connection)
        for name, (table, column) in _TOUCHED.items():
            connection.execute(f"INSERT INTO touched_{name} SELECT DISTINCT {column} FROM working.{table}")
        _write_vectors(connection, small)
        made = _recorded(connection, Made(number, digest, number))
        connection.execute(_PUBLISH)
        if not small:
            connection.execute("CHECKPOINT")  # rows stay in memory until a checkpoint writes them
        connection.execute(_PUBLISH_MENTIONS)
        connection.execute(_PUBLISH_FACTS)
        _copy_whole(connection)
        _write_calls(connection, llm_calls)
        write_search_tables(connection)
        return made, _finished(connection)


class State(NamedTuple):
    """The state of the working database since a publication: the logged changes, whether they alone are too many to
    bring the publication up to date by them, the revision of the last, and the hash of the content."""

    changed: Changed
    is_much: bool
    revision: int
    digest: str


class Update(NamedTuple):
    """A publication brought up to date: how it was made, its rows per table, and the revision it has the changes of."""

    made: Made
    rows: dict[str, int]
    revision: int


def update(
    working: WorkingDatabase,
    draft: Path,
    number: int,
    last: Made,
    made_with: str,
    known: State,
    llm_calls: pl.DataFrame | None,
) -> Update | None:
    """Bring `draft`, a copy of the publication `last`, up to date with the working database, as publication `number`.

    The working database is locked while the rows that have changed are read: they are few, and copying all of it would
    take longer.

    Args:
        made_with: of the mark of the publication in the change log.
        known: the state of the working database a moment ago.

    Returns:
        None if the publication has to be made from nothing: the last one is damaged, or too much has changed.
    """
    small, limits = is_small(working.path), working.limits.beside(working.path)
    if rows_of(draft, limits) is None:
        return None
    with (
        memory_errors(limits),
        in_memory(limits, suits_one_thread(working.path)) as connection,
        opened(connection, draft, "published", _OPTIONS),
    ):
        with working.closed() as path, opened(connection, path, "working"):
            state = state_since(connection, last, made_with, known)
            connection.execute("USE published")
            if not state or state.is_much:
                return None
            made = last._replace(number=number, digest=state.digest)
            replaced = _replace_touched(connection, state.changed, made, small)
        if not replaced or not update_search_tables(connection, replaced.before):
            return None
        _write_calls(connection, llm_calls)
        return Update(replaced.made, _finished(connection), state.revision)


class _Replaced(NamedTuple):
    """The publication as recorded, and what its tables of searches were made from."""

    made: Made
    before: SearchedBefore


def _replace_touched(
    connection: duckdb.DuckDBPyConnection, changed: Changed, made: Made, small: bool
) -> _Replaced | None:
    """Replace the touched rows of all tables but those of searches; None, and nothing done, if they are too many."""
    _create_touched(connection)
    create = "CREATE TEMP TABLE changed_rows AS SELECT table_name, id FROM given"
    execute_with(connection, create, given=changed.rows)
    connection.execute(_FIND_TOUCHED)
    if _touches_much(connection) or not _same_dimensions(connection):
        return None
    before = searched_before(connection)
    _write_vectors(connection, small)
    connection.execute("DELETE FROM publication")
    made = _recorded(connection, made)
    connection.execute(_PUBLISH)
    connection.execute(_PUBLISH_MENTIONS)
    connection.execute(_PUBLISH_FACTS)
    _copy_whole(connection)
    return _Replaced(made, before)


def _recorded(connection: duckdb.DuckDBPyConnection, made: Made) -> Made:
    """Record in the publication that it is made now, from the attached working database."""
    revision = one_value(connection, "SELECT coalesce(max(revision), 0) FROM working.community_history")
    made = made._replace(published_at=datetime.now(UTC).replace(tzinfo=None), community_revision=revision)
    record(connection, "publication", made)
    return made


def _create_touched(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("".join(f"CREATE TEMP TABLE touched_{name} (id VARCHAR);" for name in _TOUCHED))
    connection.execute(_CLAIMS)


def state_since(
    connection: duckdb.DuckDBPyConnection, last: Made, made_with: str, known: State | None = None
) -> State | None:
    """The state of the working database since the publication `last`; None if its changes are not known.

    `known`: the state that was found before, which still holds if no change was logged since.
    """
    changed = changes_since_mark(connection, READER, LOGGED, made_with)
    if changed is None:
        return None
    if known and changed.revision == known.revision:
        return known
    digest = content_digest(connection, last.digest, changed)
    return State(changed, _is_much(connection, changed), changed.revision, digest)


def _is_much(connection: duckdb.DuckDBPyConnection, changed: Changed) -> bool:
    counts = ", ".join(f"(SELECT count(*) FROM {name})" for name in _WEIGHED)
    ((*present,),) = connection.execute(f"SELECT {counts}").fetchall()
    return changed.ids(*_WEIGHED).len() > MAX_CHANGED * sum(present)


def _touches_much(connection: duckdb.DuckDBPyConnection) -> bool:
    counts = ", ".join(f"(SELECT count(*) FROM touched_{n}), (SELECT count(*) FROM working.{n})" for n in _WEIGHED)
    ((*found,),) = connection.execute(f"SELECT {counts}").fetchall()
    return sum(found[::2]) > MAX_CHANGED * sum(found[1::2])


def _same_dimensions(connection: duckdb.DuckDBPyConnection) -> bool:
    ((new, old),) = connection.execute(
        # One of them, as all have one length; by rowid, because a join reads all vectors.
        "SELECT (SELECT len(vector) FROM working.embeddings WHERE rowid = "
        "(SELECT min(e.rowid) FROM working.embeddings e SEMI JOIN touched_embeddings USING (id))), "
        "(SELECT len(vector) FROM embeddings LIMIT 1)"
    ).fetchall()
    return new is None or new == old


def _write_vectors(connection: duckdb.DuckDBPyConnection, small: bool) -> None:
    """Replace the touched rows of embeddings, sorted by kind and number. Nothing else may have been written yet."""
    connection.execute("DELETE FROM embeddings WHERE id IN (FROM touched_embeddings)")
    connection.execute(_NUMBER_VECTORS)
    count = one_value(connection, "SELECT count(*) FROM numbered_vectors")
    for first in range(1, count + 1, _VECTORS_PER_PART):
        connection.execute(_VECTORS, {"first": first, "last": first + _VECTORS_PER_PART - 1})
    connection.execute("DROP TABLE numbered_vectors")
    if not small:
        # Uncompressed: vectors hardly compress, and are compared a third faster. The setting applies when blocks are
        # written, hence the checkpoint.
        connection.execute("SET force_compression = 'uncompressed'; CHECKPOINT; RESET force_compression")


def _copy_whole(connection: duckdb.DuckDBPyConnection) -> None:
    """Bring the tables up to date that are compared row by row: they are small, or people may edit them."""
    for table in (*MAIN, *OPERATIONS):
        if table.name in _COPIED_WHOLE:
            _replace_differing(connection, table, f"working.{identifier(table.name)}")


def _write_calls(connection: duckdb.DuckDBPyConnection, llm_calls: pl.DataFrame | None) -> None:
    if llm_calls is not None:
        execute_with(connection, f"CREATE TEMP TABLE calls AS {CALLS_AS_PUBLISHED}", incoming_calls=llm_calls)
        _replace_differing(connection, LLM_CALLS, "calls")


def _replace_differing(connection: duckdb.DuckDBPyConnection, table: Table, source: str) -> None:
    """Make the rows of `table` those of the relation `source`; rows under keys without a difference are not touched."""
    columns, keys = (", ".join(map(identifier, names)) for names in (table.column_names, table.key))
    # Counted, because EXCEPT ALL numbers the rows first and takes ten times as long.
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE differing AS SELECT DISTINCT {keys} FROM ("
        f"SELECT {columns}, 1 AS is_new FROM {source} UNION ALL SELECT {columns}, -1 FROM {table.sql_name}"
        f") GROUP BY {columns} HAVING sum(is_new) <> 0"
    )
    if one_value(connection, "SELECT count(*) FROM differing"):
        same_key = " AND ".join(f'r."{c}" IS NOT DISTINCT FROM d."{c}"' for c in table.key)
        connection.execute(f"DELETE FROM {table.sql_name} r WHERE EXISTS (FROM differing d WHERE {same_key})")
        connection.execute(
            f"INSERT INTO {table.sql_name} BY NAME SELECT {columns} FROM {source} r "
            f"WHERE EXISTS (FROM differing d WHERE {same_key}) ORDER BY ALL"
        )


def _finished(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    name_after_publication(connection)
    rows = dict(connection.execute(ROWS_PER_TABLE).fetchall())
    connection.execute("CHECKPOINT published")
    return rows


def create_tables(connection: duckdb.DuckDBPyConnection, dimensions: int) -> None:
    """Create the empty tables, macros and views of a publication, for vectors of this many dimensions."""
    ddl = "".join(table.ddl() for table in PUBLISHED).replace("{dimensions}", str(dimensions))
    connection.execute(f"BEGIN;{ddl}COMMIT")
    write_macros(connection)


_BY_ROW = {
    **{name: f"FROM {identifier(name)}" for name in sorted(LOGGED)},
    # A vector is hashed first: written out in digits, vectors would take longer than all else.
    "embeddings": """
        SELECT kind, id, model, hash(vector) FROM embeddings
        WHERE (kind = 'text_unit' AND id IN (SELECT id FROM text_units))
           OR (kind = 'entity' AND id IN (SELECT id FROM entities))
           OR (kind = 'community_report' AND id IN (SELECT id FROM community_reports))""",
    "numbers": """
        SELECT table_name, id, human_readable_id FROM numbers
        WHERE (table_name = 'text_units' AND id IN (SELECT id FROM text_units))
           OR (table_name = 'documents' AND id IN (SELECT id FROM documents))
           OR (table_name = 'covariates' AND id IN (SELECT id FROM covariates))""",
}
_WHOLE = {
    "entity_aliases": "FROM entity_aliases",
    "entity_candidates": "FROM entity_candidates",
    "index_errors": "SELECT * EXCLUDE (first_seen) FROM index_errors",
    **{name: f"FROM {name}" for name in ("index_settings", "prompt_profile")},
}
"""By table, what is read of the working database, records of runs excluded; the rest is derived."""


@contextlib.contextmanager
def reading(source: Source) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that reads a copy of the working database."""
    with (
        in_memory(source.limits, suits_one_thread(source.path)) as connection,
        opened(connection, source.path, "working"),
    ):
        yield connection


def content_digest(
    connection: duckdb.DuckDBPyConnection, before: str | None = None, changed: Changed | None = None
) -> str:
    """One hash over the shape of a publication and all rows it is made from, in any order.

    It reads the working database only: detecting that nothing has changed builds nothing. With the digest `before` the
    logged changes, tables that are logged are not read.
    """
    rest = _sums(connection, _WHOLE)
    rows = before.partition("-")[0] if before and changed else _sums(connection, _BY_ROW)
    if before and changed and changed.rows.height:
        rows = stable_id("content", rows, changed.revision)
    return f"{rows}-{rest}"


def _sums(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, str]) -> str:
    # The sum of row hashes does not depend on the order of rows; positions tell the tables apart.
    parts = " UNION ALL ".join(
        f"SELECT {place} AS place, sum(md5_number_lower(t::VARCHAR)::HUGEINT) AS total FROM ({relation}) AS t"
        for place, relation in enumerate(tables.values())
    )
    ((digest,),) = connection.execute(
        f"SELECT md5($shape || string_agg(place || ':' || total, ',' ORDER BY place)) FROM ({parts})",
        {"shape": publication_shape()},
    ).fetchall()
    return str(digest)


@functools.cache
def publication_shape() -> str:
    """Hash of tables, macros and the SQL that fills them: a changed macro makes a new publication."""
    shape = [
        *(table.ddl() for table in PUBLISHED),
        _PUBLISH,
        _PUBLISH_MENTIONS,
        _PUBLISH_FACTS,
        macros_sql(),
        views_sql(),
    ]
    return hashlib.md5("".join(shape).encode()).hexdigest()
