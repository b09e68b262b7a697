"""In-memory DuckDB instances, kept for the next connection: opening one takes 15 ms, attaching a file to it takes 2."""

import contextlib
import os
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from graphrag_assets.store.connections import CONNECTION_CONFIG, Limits, one_value
from graphrag_assets.store.schema import literal

_instances: queue.LifoQueue[tuple[dict[str, Any], duckdb.DuckDBPyConnection]] = queue.LifoQueue()
"""Idle instances with their configuration. Changing the number of threads of one would take longer than a query."""
_inherited: list[duckdb.DuckDBPyConnection] = []
"""Instances of the parent process: after a fork their threads are missing, so they are neither used nor closed."""


def _after_fork() -> None:
    _inherited.extend(instance for _, instance in _instances.queue)
    _instances.queue.clear()


os.register_at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def idle_instance(limits: Limits, one_thread: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to an instance that nobody else uses, with these limits; `one_thread` or all.

    The caller must detach the files that it attaches (see `opened`). After an exception the instance is closed.
    """
    config = {**limits.config(), **({"threads": 1} if one_thread else {})}
    instance = _instance(config)
    connection = instance.cursor()
    try:
        yield connection
    except BaseException:
        connection.close()
        instance.close()
        raise
    connection.close()
    _instances.put((config, instance))


@contextlib.contextmanager
def opened(connection: duckdb.DuckDBPyConnection, file: Path, name: str, options: str = "READ_ONLY") -> Iterator[None]:
    """The file is attached as `name`, and in use. After an exception it is detached too: others may wait for it."""
    close = f"USE {one_value(connection, 'SELECT current_database()')}; DETACH {name}"
    connection.execute(f"ATTACH {literal(file)} AS {name} ({options}); USE {name}")
    try:
        yield
    except BaseException:
        with contextlib.suppress(duckdb.Error):
            connection.execute(close)
        raise
    connection.execute(close)


def _instance(config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """An idle instance with this configuration, or a new one. Idle ones with other limits of memory are closed."""
    others = []
    try:
        while True:
            found, instance = _instances.get_nowait()
            if found == config:
                return instance
            if {**found, "threads": None} == {**config, "threads": None}:
                others.append((found, instance))
            else:
                instance.close()
    except queue.Empty:
        return duckdb.connect(config={**CONNECTION_CONFIG, **config})
    finally:
        for other in others:
            _instances.put(other)


def close_idle_instances() -> None:
    """Free what DuckDB keeps in memory for the next connection, before something else needs as much."""
    with contextlib.suppress(queue.Empty):
        while True:
            _instances.get_nowait()[1].close()
