"""What ends work early: signals, and a search that nobody waits for any more, which a timeout does not end.

A search is ended in all its threads by the `Cancellation` of its context.
"""

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Protocol

from graphrag_assets.errors import QueryError

_noting: list[socket.socket] = []
"""Has the numbers of the signals, whatever the handlers of libraries have made of them."""


@contextlib.contextmanager
def signals_noted() -> Iterator[None]:
    """Note signals, and let SIGTERM interrupt as Ctrl-C does. Outside of the main thread, which gets none, do nothing.

    Dagster replaces the handlers during a run, treats both signals alike, and drops one that arrives between two steps.
    """
    if _noting or threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        _noting.append(reader)
        try:
            yield
        finally:
            _noting.clear()
            signal.set_wakeup_fd(wakeup)
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def first_signal() -> int | None:
    """Return the number of the first signal that was noted; None if there was none."""
    with contextlib.suppress(BlockingIOError):
        return _noting[0].recv(1, socket.MSG_PEEK)[0] if _noting else None
    return None


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if a signal was noted."""
    if first_signal():
        raise KeyboardInterrupt("A signal ended the work.")


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
