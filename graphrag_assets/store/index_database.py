"""The working database: written by assets, in short transactions behind one cross-process lock.

DuckDB lets one process at a time open a file for writing, during which no other process can read it. So a connection
lives for one read or one transaction, never during a computation, and a file lock makes writers queue instead of
failing (2.7 times faster than retrying on lock errors, and no starvation).
"""

import contextlib
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from filelock import FileLock, Timeout

from graphrag_assets.errors import AccessError, OtherVersionError, StoreError, full_disk, refuse_denied
from graphrag_assets.store.connections import (
    CONNECTION_CONFIG,
    DEFAULT_MEMORY,
    ROW_GROUPS,
    execute_with,
    in_memory,
    interrupts_raised,
    memory_errors,
    opened,
    refuse_other_version,
    refuse_path,
)
from graphrag_assets.store.index_files import lock_file, refuse_folder, replacing, writer_lock
from graphrag_assets.store.schema import (
    DENIED,
    NUMBERS,
    PROMPT_PROFILE,
    SCHEMA_VERSION,
    WORKING,
    Table,
    identifier,
    literal,
    sql,
)

log = logging.getLogger(__name__)

LOCK_TIMEOUT_SECONDS = 600.0
OUTDATED = "outdated.duckdb"
"""The working database of another version, beside the present one. A purge deletes it."""
_KEPT = (PROMPT_PROFILE, NUMBERS)
"""Tables that a new database takes over: what requests to models depend on, and no input has."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The effect of a write on a table: rows now in it, rows inserted (new or changed), rows deleted (or changed)."""

    rows: int
    inserted: int
    deleted: int


@dataclass(frozen=True)
class IndexDatabase:
    """The working database at `path`, with the memory of its queries. Cheap to create; opens nothing until used."""

    path: Path
    memory: str = DEFAULT_MEMORY

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the database for this process."""
        lock = FileLock(lock_file(self.path.parent, self.path.stem), timeout=LOCK_TIMEOUT_SECONDS)
        try:
            held = lock.acquire()
        except Timeout:
            raise StoreError(
                f"{self.path} stayed locked for {LOCK_TIMEOUT_SECONDS:.0f} s. Another process is writing to it; "
                "if none is, end the process that hangs and try again."
            ) from None
        with held:
            yield

    @contextlib.contextmanager
    def connect(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield an open connection with exclusive access to the database. For short work only."""
        with (
            self.lock(),
            interrupts_raised(),
            memory_errors(self.memory),
            _attached(self.path, self.memory) as connection,
        ):
            yield connection

    def renew(self) -> None:
        """Replace a database of another version by an empty one, and keep the file beside it."""
        with self.lock(), interrupts_raised():
            try:
                with _attached(self.path, self.memory):
                    return
            except OtherVersionError:
                outdated = self.path.with_name(OUTDATED)
            with replacing(outdated) as copy:
                shutil.copyfile(self.path, copy)
            with replacing(self.path) as draft:
                _make_database(draft, outdated)
        log.warning(
            "The index was made by another version of graphrag-assets, which has other tables. It is derived again "
            "from its input; paid answers come from the ledger. Imported indexes must be imported again. %s has the "
            "tables as they were, and can be deleted.",
            outdated,
        )

    def writing(self, step: str, run_id: str = "") -> contextlib.AbstractContextManager[None]:
        """Hold the index's writer lock for a step, see `writer_lock`. The database itself is not held."""
        return writer_lock(self.path.parent, step, run_id)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection inside one transaction, rolled back on an exception or a crash."""
        with self.connect() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            except BaseException:
                with contextlib.suppress(duckdb.Error, RuntimeError):  # closing the connection rolls back, too
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def read(self, query: str, parameters: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """Return the result of one query."""
        return self.read_all(query, parameters=parameters)[0]

    def content_versions(self, tables: Iterable[str]) -> dict[str, str]:
        """Return the version of the rows of each table, by its name: equal contents have equal versions.

        A version is the number of rows and the exclusive or of their hashes, so it does not depend on their order.
        """
        query = " UNION ALL ".join(
            f"SELECT '{name}' AS name, printf('%d-%016x', count(*), coalesce(bit_xor(hash(t)), 0)) AS version "
            f'FROM "{name}" t'
            for name in tables
        )
        return dict(self.read(query).iter_rows())

    def rewrite(self) -> None:
        """Rewrite the file without deleted rows: DuckDB reuses their blocks, but does not erase them.

        A crash leaves the old file or the new one.
        """
        with self.connect() as connection, replacing(self.path) as draft:  # nobody opens the old file before
            connection.execute("CHECKPOINT")
            name = identifier(self.path.stem)
            connection.execute(f"ATTACH {literal(draft)} AS rewritten ({ROW_GROUPS})")
            connection.execute(f"COPY FROM DATABASE {name} TO rewritten; DETACH rewritten")

    def read_all(self, *queries: str, parameters: Mapping[str, Any] | None = None) -> list[pl.DataFrame]:
        """Return the results of several queries with the same parameters, all as of the same moment.

        Where this user may not write the index, as on a read-only disk, it is read without locks.
        """
        with contextlib.ExitStack() as stack:
            try:
                lock_file(self.path.parent, self.path.stem)
                refuse_denied(self.path, os.R_OK | os.W_OK)
            except AccessError:
                refuse_denied(self.path)
                connection = stack.enter_context(in_memory(self.path, self.memory))
                stack.enter_context(opened(connection, self.path, identifier(self.path.stem)))
                _refuse_other_version(connection, self.path)
            else:
                connection = stack.enter_context(self.connect())
            return [pl.DataFrame(connection.sql(query, params=dict(parameters or {}))) for query in queries]


@contextlib.contextmanager
def _attached(path: Path, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection with the file at `path` attached for the duration of the context; makes it if it is
    missing.
    """
    refuse_path(path)
    refuse_denied(path, os.R_OK | os.W_OK)
    if not path.exists():
        with replacing(path) as draft:
            _make_database(draft)
    try:
        with in_memory(path, memory) as connection, contextlib.ExitStack() as stack:
            try:
                stack.enter_context(opened(connection, path, identifier(path.stem), ROW_GROUPS))
            except duckdb.IOException as error:
                refuse_folder(path)
                if _is_damaged(error) or full_disk(error):
                    raise
                raise StoreError(
                    f"Cannot open {path}: {error}. If a DuckDB shell or notebook has it open, close it there; to look "
                    "at the index, open graphrag.duckdb beside it instead, which never blocks anyone."
                ) from error
            _refuse_other_version(connection, path)
            yield connection
    except duckdb.Error as error:
        if not _is_damaged(error):
            raise
        raise StoreError(
            f"The working database {path} is damaged. Restore it from a backup. Or delete it and run `graphrag-assets "
            "index`: paid answers come from the ledger. Imported indexes must be imported again. "
            f"DuckDB says: {str(error).partition(chr(10))[0]}"
        ) from error


def _refuse_other_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        refuse_other_version(connection, "index_state", path)
    except duckdb.CatalogException:
        raise OtherVersionError(path) from None


def _make_database(draft: Path, outdated: Path | None = None) -> None:
    """Make a database with all tables: a draft, because half of one is damage. It takes rows over from `outdated`.

    Its views: claims that do not hold (id), and the others (id, subject_entity_id, object_entity_id).
    """
    with duckdb.connect(config=CONNECTION_CONFIG) as connection, opened(connection, draft, "draft", ROW_GROUPS):
        ddl = "".join(table.ddl() for table in WORKING)
        state = f"INSERT INTO index_state VALUES (0, {literal(SCHEMA_VERSION)})"
        resolved = sql("resolved_claims")
        taken_back = sql("claims_taken_back").replace("{resolved}", resolved).replace("$denied", literal(DENIED))
        views = (
            f"CREATE VIEW claims_taken_back AS {taken_back}; CREATE VIEW resolved_claims AS "
            f"WITH claims AS (FROM covariates ANTI JOIN claims_taken_back USING (id)) FROM ({resolved});"
        )
        connection.execute(f"BEGIN; {ddl} {views} {state}; COMMIT")
        if outdated:
            with opened(connection, outdated, "outdated"):
                for table in _KEPT:
                    with contextlib.suppress(duckdb.Error):  # it has other columns there
                        name = table.sql_name
                        connection.execute(f"INSERT INTO draft.{name} BY NAME FROM outdated.{name}")


_DAMAGE = ("not a valid DuckDB database file", "Could not read enough bytes", "Corrupt database file", "checksum")


def _is_damaged(error: duckdb.Error) -> bool:
    """Whether DuckDB cannot read the file, rather than perform the statement. It has no exception of its own for it."""
    return any(words in str(error) for words in _DAMAGE)


def replace_rows(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    rows: pl.DataFrame | str,
    column: str,
    values: pl.Series,
) -> Changes:
    """Replace the rows of `table` whose `column` is one of `values`, see `replace_table`.

    The result counts all rows of the table.
    """
    create = "CREATE OR REPLACE TEMP TABLE replaced_values AS SELECT DISTINCT value FROM all_values"
    execute_with(connection, create, all_values=pl.DataFrame({"value": values}))
    scope = f"{identifier(column)} IN (SELECT value FROM replaced_values)"
    changes = replace_table(connection, table, rows, scope)
    return replace(changes, rows=_count(connection.execute(f"SELECT count(*) FROM {identifier(table.name)}")))


def replace_table(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    rows: pl.DataFrame | str,
    scope: str = "true",
    **parameters: object,
) -> Changes:
    """Replace the rows of `table` within `scope`, a condition, by the distinct `rows`; equal rows are not touched.

    `rows` are a frame or a SELECT, with the columns of the table in any order. Rows are compared by a hash.
    """
    name, row_hash = identifier(table.name), _row_hash(table)
    typed = ", ".join(f'"{c.name}"::{c.type} AS "{c.name}"' for c in table.columns)
    _create(connection, "fresh", rows, typed)
    among_rows = f"rowid IN (SELECT rowid FROM {name} WHERE {scope})"  # so that nothing else is read of other rows
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE stored_hashes AS SELECT rowid AS place, {row_hash} AS h FROM {name} "
        f"WHERE {scope if scope == 'true' else among_rows}",
        parameters,
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE fresh_hashes AS SELECT min(rowid) AS place, {row_hash} AS h FROM fresh GROUP BY h;
        CREATE OR REPLACE TEMP TABLE kept AS
        SELECT min(place) AS place, h FROM stored_hashes SEMI JOIN fresh_hashes USING (h) GROUP BY h
        """
    )
    gone = f"FROM {name} WHERE rowid IN (SELECT place FROM stored_hashes ANTI JOIN kept USING (place))"
    arrived = "FROM fresh WHERE rowid IN (SELECT place FROM fresh_hashes ANTI JOIN kept USING (h))"
    deleted = _count(connection.execute(f"DELETE {gone}"))
    inserted = _count(connection.execute(f"INSERT INTO {name} BY NAME {arrived}"))
    return Changes(_count(connection.execute("SELECT count(*) FROM fresh")), inserted, deleted)


def _create(connection: duckdb.DuckDBPyConnection, name: str, rows: pl.DataFrame | str, columns: str = "*") -> None:
    """Make a temporary table of `rows`, a frame or a SELECT."""
    create = f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {columns} FROM "
    if isinstance(rows, str):
        connection.execute(f"{create}({rows})")
    else:
        execute_with(connection, f"{create}frame", frame=rows)


def _row_hash(table: Table) -> str:
    """Return a hash of a row as SQL. DuckDB's is the same of a null list, an empty one, and one of a null."""
    parts = []
    for column in table.columns:
        name = identifier(column.name)
        parts.append(f"{name}::VARCHAR" if "STRUCT" in column.type else name)
        if column.type.endswith("[]"):
            parts.append(f"coalesce(len({name}), -1)")
    return f"hash({', '.join(parts)})"


def _count(result: duckdb.DuckDBPyConnection) -> int:
    rows = result.fetchall()  # an unfinished result blocks the connection
    return int(rows[0][0]) if rows else 0


def insert_row(connection: duckdb.DuckDBPyConnection, table: Table, values: Mapping[str, object]) -> None:
    """Insert a row by the names of its columns."""
    typed = ", ".join(f'${c.name}::{c.type} AS "{c.name}"' for c in table.columns if c.name in values)
    connection.execute(f"INSERT INTO {identifier(table.name)} BY NAME SELECT {typed}", dict(values))


def assign_numbers(connection: duckdb.DuckDBPyConnection, table_name: str, ids: pl.DataFrame | str) -> None:
    """Assign the next numbers to the new ids of `ids`: columns id, optionally content, and columns to order by.

    `ids` is a frame, or a query where they are as many as the corpus has.

    Numbers count from 0 as in GraphRAG. An id keeps its number forever. A new id with the `content` of a deleted one
    takes over its number, such as a claim in an edited text unit or a document moved to another batch, so that
    citations of it stay true.
    """
    _create(connection, "incoming_ids", ids)
    columns = connection.sql("FROM incoming_ids").columns
    content = "content" if "content" in columns else "NULL::VARCHAR"
    order = ", ".join(f'"{c}"' for c in columns if c not in ("id", "content")) or "id"
    parameters = {"name": table_name}
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE taken_over AS
        WITH newcomers AS (
            SELECT id, {content} AS content, row_number() OVER (PARTITION BY {content} ORDER BY {order}, id) AS place
            FROM incoming_ids
            WHERE {content} IS NOT NULL AND id NOT IN (SELECT id FROM numbers WHERE table_name = $name)
        ), departed AS (
            SELECT id, content, row_number() OVER (PARTITION BY content ORDER BY human_readable_id) AS place
            FROM numbers WHERE table_name = $name AND content IS NOT NULL AND id NOT IN (SELECT id FROM incoming_ids)
        )
        SELECT d.id AS old_id, n.id AS new_id FROM newcomers n JOIN departed d USING (content, place)
        """,
        parameters,
    )
    connection.execute(
        "UPDATE numbers SET id = t.new_id FROM taken_over t WHERE table_name = $name AND id = t.old_id", parameters
    )
    connection.execute(
        f"""
        INSERT INTO numbers BY NAME
        WITH taken AS (SELECT coalesce(max(human_readable_id) + 1, 0) AS base FROM numbers WHERE table_name = $name)
        SELECT $name AS table_name, id, base + row_number() OVER (ORDER BY {order}, id) - 1 AS human_readable_id,
               {content} AS content
        FROM incoming_ids, taken
        WHERE id NOT IN (SELECT id FROM numbers WHERE table_name = $name)
        """,
        parameters,
    )
    connection.execute("DROP TABLE temp.incoming_ids")


def numbered(connection: duckdb.DuckDBPyConnection, table_name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` with the column human_readable_id; every id must have a number."""
    query = "SELECT id, human_readable_id FROM numbers WHERE table_name = $name"
    numbers = pl.DataFrame(connection.sql(query, params={"name": table_name}))
    return frame.join(numbers, on="id", how="left", maintain_order="left")
