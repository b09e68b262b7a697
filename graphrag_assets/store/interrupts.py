"""Signals end what runs within moments, and no broad `except Exception` takes them for a failure.

DuckDB replaces the error that a signal handler raises by a RuntimeError. Code that goes on after the failure of one
batch would go on after Ctrl-C, or after a Dagster run was terminated.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import duckdb

from graphrag_assets.errors import chain_of
from graphrag_assets.runtime.cancellation import executing
from graphrag_assets.runtime.received_signals import raise_if_interrupted

Result = TypeVar("Result")
_MESSAGE = "Query interrupted"
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
        if not any(_is_interrupt(one) for one in chain_of(error)):
            raise
        raise KeyboardInterrupt("A signal ended the query.") from error


def _is_interrupt(error: BaseException) -> bool:
    return (
        not isinstance(error, Exception)
        or isinstance(error, duckdb.InterruptException)
        or (isinstance(error, RuntimeError) and str(error) == _MESSAGE)
    )


def interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], Result]) -> Result:
    """The result of `work`, which executes statements of `connection`; a signal ends them, and its error is raised.

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
