"""DuckDB instances in memory that a test keeps for its next connection.

Making one takes 12 ms of a processor, attaching a file to it 2, and a run of `index` attaches the working database
ninety times. Tests that kill processes, and all others that start one, run without this.
"""

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterator

import duckdb
import pytest

from graphrag_assets.store import connections, publication_writer, working
from graphrag_assets.store.connections import Limits

FUNCTIONS = ("entity_id", "relationship_id")
"""What the package creates on a connection belongs to the instance."""
make = connections.in_memory
idle = defaultdict[object, list[tuple[duckdb.DuckDBPyConnection, contextlib.ExitStack]]](list)


@contextlib.contextmanager
def in_memory(limits: Limits, one_thread: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """As the package's own. After an exception the instance is closed."""
    kept = idle[os.getpid(), limits, one_thread]
    if kept:
        instance, stack = kept.pop()
    else:
        stack = contextlib.ExitStack()
        instance = stack.enter_context(make(limits, one_thread))
    try:
        with instance.cursor() as connection:
            yield connection
            for name in FUNCTIONS:
                with contextlib.suppress(duckdb.InvalidInputException):
                    connection.remove_function(name)
    except BaseException:
        stack.close()
        raise
    kept.append((instance, stack))


def close_idle() -> None:
    """Close what this process keeps."""
    for key in [key for key in idle if key[0] == os.getpid()]:
        for _, stack in idle.pop(key):
            stack.close()


@pytest.fixture(scope="session", autouse=True)
def instances_kept() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (publication_writer, working):
            patch.setattr(module, "in_memory", in_memory)
        yield
        close_idle()


@pytest.fixture(autouse=True)
def instances_of_one_test() -> Iterator[None]:
    yield
    close_idle()
