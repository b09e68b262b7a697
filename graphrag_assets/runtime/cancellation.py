"""Ends what a search does in threads when nobody waits for it any more: a timeout ends the wait, not the thread."""

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Protocol

from graphrag_assets.errors import QueryError


class Connection(Protocol):
    """What executes a statement."""

    def interrupt(self) -> None:
        """End the statement."""


class Cancellation:
    """Ends the work of one caller in all threads that have its context, and lets no statement begin."""

    def __init__(self) -> None:
        self.is_canceled = False
        self._running, self._lock = set[Connection](), threading.Lock()

    def hold(self) -> None:
        """Make it that of the current context, and of the threads and tasks that get a copy of it."""
        _cancellation.set(self)

    def cancel(self) -> None:
        """Interrupt the statements."""
        with self._lock:
            self.is_canceled = True
            for connection in self._running:
                connection.interrupt()

    @contextlib.contextmanager
    def _executing(self, connection: Connection) -> Iterator[None]:
        with self._lock:
            raise_if_canceled()
            self._running.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(connection)


_cancellation: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def raise_if_canceled() -> None:
    """Raise QueryError if the caller of this context waits no more: for loops that may take a tenth of a second."""
    if (cancellation := _cancellation.get()) and cancellation.is_canceled:
        raise QueryError("The search has ended.")


def executing(connection: Connection) -> contextlib.AbstractContextManager[None]:
    """Inside the block the connection executes a statement, which ends with the context's search.

    Raises:
        QueryError: the search has ended.
    """
    cancellation = _cancellation.get()
    return cancellation._executing(connection) if cancellation else contextlib.nullcontext()
