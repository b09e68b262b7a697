"""DuckDB connections: their configuration, read-only files, frames as the tables of a statement, and interrupts.

Signals end what runs within moments, and no broad `except Exception` takes them for a failure: DuckDB replaces the
error that a signal handler raises by a RuntimeError, and code that goes on after the failure of one batch would go on
after Ctrl-C, or after a Dagster run was terminated.
"""

import contextlib
import functools
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import polars as pl
from polars.datatypes import DataTypeClass

from graphrag_assets.errors import OtherVersionError, StoreError, chain_of
from graphrag_assets.runtime.interruption import executing, raise_if_interrupted
from graphrag_assets.store.schema import PUBLISHED, SCHEMA_VERSION, literal

NO_EXTENSIONS: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
"""Without network look-ups, which fail on hosts behind a firewall."""
CONNECTION_CONFIG: dict[str, Any] = {
    **NO_EXTENSIONS,
    "storage_compatibility_version": "v1.5.0",  # so that 1.5 tools, the duckdb CLI for one, open the file
    "dynamic_or_filter_threshold": 1_000,  # keys of a join that are compared with zone maps
}
ROW_GROUPS = "STORAGE_VERSION 'v1.5.0', ROW_GROUP_SIZE 16384"
"""The options with which a file is attached for writing, always the same: with others a checkpoint rewrites all rows.

An append rewrites the last group of rows, and zone maps skip groups, so they are smaller than DuckDB's.
"""
SPILL_FOLDER = "spill"
"""Where DuckDB puts what does not fit into memory, beside the working database; a purge empties it."""
DEFAULT_MEMORY = "1.2GB"


def refuse_path(file: Path) -> None:
    """Raise StoreError for a path that DuckDB cannot write: it reads `?` as a parameter and `\\` as a slash."""
    path = file.absolute().as_posix()
    if wrong := next((character for character in "?\\" if character in path), None):
        raise StoreError(
            f"DuckDB cannot keep a database in {file.absolute().parent}: the path has the character {wrong}. Rename "
            "the folder, or set GRAPHRAG_DATA to another."
        )


@contextlib.contextmanager
def memory_errors(memory: str) -> Iterator[None]:
    """Raise StoreError, with the setting, when a statement needs more memory than this: not everything is spilled."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise StoreError(
            f"DuckDB needs more memory than the {memory} it may use. Raise GRAPHRAG_MEMORY_LIMIT and run again: "
            f"what was committed stays. DuckDB says: {str(error).partition(chr(10))[0]}"
        ) from error


def refuse_other_version(connection: duckdb.DuckDBPyConnection, table: str, path: Path) -> None:
    """Raise OtherVersionError unless the `schema_version` in a table of the file at `path` is that of this package."""
    try:
        versions = connection.execute(f"SELECT DISTINCT schema_version FROM {table}").fetchall()
    except duckdb.BinderException:
        versions = [(None,)]
    if versions not in ([], [(SCHEMA_VERSION,)]):
        raise OtherVersionError(path)


@contextlib.contextmanager
def attached(**paths: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a database in memory with the publications attached, read-only, under their names."""
    with duckdb.connect(config=NO_EXTENSIONS) as connection:
        for name, path in paths.items():
            if not path.is_file():
                raise StoreError(f"The publication {path} does not exist. `graphrag-assets publications` lists all.")
            try:
                connection.execute(f"ATTACH {literal(path)} AS {name} (READ_ONLY)")
                refuse_other_version(connection, f"{name}.publication", path)
            except duckdb.Error as error:
                raise StoreError(f"Cannot open the publication {path}: {error}") from error
        yield connection


def is_below(file: Path, megabytes: int) -> bool:
    """Whether a file has fewer megabytes, or does not exist yet."""
    return not file.exists() or file.stat().st_size < megabytes * 2**20


@contextlib.contextmanager
def in_memory(file: Path, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to an empty database, to attach `file` to; what exceeds `memory` is spilled beside the
    file.
    """
    spilled = str((file.parent / SPILL_FOLDER).absolute())
    config = {**CONNECTION_CONFIG, "memory_limit": memory, "temp_directory": spilled}
    if is_below(file, 512):  # for short statements, distributing work costs the most
        config["threads"] = 1
    with _kept(os.getpid(), threading.get_ident(), *config.items()).cursor() as connection:
        try:
            yield connection
        except BaseException:
            _kept.cache_clear()  # on a full disk nothing can be detached
            raise


@functools.lru_cache(maxsize=2)
def _kept(process: int, thread: int, *config: tuple[str, Any]) -> duckdb.DuckDBPyConnection:
    """Return an empty database of this thread: to make one takes ten times as long as to attach a file to it.

    Threads have their own, since what one attaches has its name in all connections of a database.
    """
    return duckdb.connect(config=dict(config))


@contextlib.contextmanager
def opened(connection: duckdb.DuckDBPyConnection, file: Path, name: str, options: str = "READ_ONLY") -> Iterator[None]:
    """Yield file is attached as `name`, and in use. After an exception it is detached too: others may wait for it."""
    close = f"USE {one_value(connection, 'SELECT current_database()')}; DETACH {name}"
    connection.execute(f"ATTACH {literal(file)} AS {name} ({options}); USE {name}")
    try:
        yield
    except BaseException:
        with contextlib.suppress(duckdb.Error):
            connection.execute(close)
        raise
    connection.execute(close)


def one_value(connection: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, object] | None = None) -> Any:
    """Return the only value of a query's result."""
    ((value,),) = connection.execute(query, dict(parameters or {})).fetchall()
    return value


class ArrowStream:
    """A frame that DuckDB scans by Arrow's C interface. For a polars frame itself it imports pyarrow: 165 MB."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame.cast({name: _without_null(kind) for name, kind in frame.schema.items()})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def _without_null(kind: pl.DataType | DataTypeClass) -> pl.DataType | DataTypeClass:
    """Return a type without columns of nulls alone, which DuckDB 2.0 refuses: Arrow gives them no validity bitmap."""
    match kind:
        case pl.Null():
            return pl.String()
        case pl.List(inner=inner):
            return pl.List(_without_null(inner))
        case pl.Struct(fields=fields):
            return pl.Struct({field.name: _without_null(field.dtype) for field in fields})
    return kind


def execute_with(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    parameters: Mapping[str, object] | None = None,
    **frames: pl.DataFrame,
) -> None:
    """Execute a statement that reads `frames` as tables of their names."""
    for name, frame in frames.items():
        connection.register(name, ArrowStream(frame))
    try:
        connection.execute(statement, dict(parameters or {}))
    finally:
        for name in frames:
            connection.unregister(name)


_ORDERS = {table.name: table.order for table in PUBLISHED}
_INSERT = re.compile(r"INSERT INTO (?:search\.)?(\w+)( BY NAME)?\s+(.*)", re.DOTALL)


def execute_in_order(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object] | None = None
) -> None:
    """Execute statements; what they insert into the publication in use is sorted: zone maps serve as its indexes."""
    for statement in connection.extract_statements(sql):
        query = statement.query.strip().removesuffix(";")
        if (insert := _INSERT.search(query)) and (order := _ORDERS.get(insert[1])):
            query = f"{query[: insert.start(3)]}FROM ({insert[3]}) ORDER BY {order}"
        connection.execute(query, {name: (parameters or {})[name] for name in statement.named_parameters})


Result = TypeVar("Result")
_SECONDS = 0.1


@contextlib.contextmanager
def interrupts_raised() -> Iterator[None]:
    """Raise KeyboardInterrupt, which is no Exception, if a signal ended a query of the block.

    The interrupted query may be hidden behind the errors of the statements after it, such as "Current transaction is
    aborted".
    """
    try:
        yield
    except Exception as error:
        raise_if_interrupted()
        if any(
            not isinstance(one, Exception)
            or isinstance(one, duckdb.InterruptException)
            or (isinstance(one, RuntimeError) and str(one) == "Query interrupted")
            for one in chain_of(error)
        ):
            raise KeyboardInterrupt("A signal ended the query.") from error
        raise


def interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], Result]) -> Result:
    """Return the result of `work`, which executes statements of `connection`; a signal ends them, and its error is
    raised.

    Python handles signals in the main thread, and DuckDB may work there for minutes without letting it. So the main
    thread waits, with a timeout: a signal that the system gives to another thread does not end an unlimited wait.
    """
    if threading.current_thread() is not threading.main_thread():
        with executing(connection):
            return work()
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(work)
        try:
            while not wait([future], _SECONDS).done:
                pass
        except BaseException:
            connection.interrupt()
            while not wait([future], _SECONDS).done:
                connection.interrupt()  # again: the statement may not have begun
            raise
        return future.result()
