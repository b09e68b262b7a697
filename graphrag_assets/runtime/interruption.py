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


class Signals:
    """The signals that this process has received, whatever the handlers of libraries have made of them."""

    def __init__(self, numbers: socket.socket):
        self._numbers = numbers
        self._first: int | None = None

    @property
    def first(self) -> int | None:
        """The number of the first signal; None if there was none."""
        if self._first is None:
            with contextlib.suppress(BlockingIOError):
                self._first = self._numbers.recv(1)[0]
        return self._first


_noting: list[Signals] = []


@contextlib.contextmanager
def signals_noted() -> Iterator[Signals | None]:
    """Note signals, and let SIGTERM interrupt as Ctrl-C does; None outside of the main thread, which gets no signals.

    Dagster replaces the handlers during a run, treats both signals alike, and drops one that arrives between two steps.
    """
    if _noting or threading.current_thread() is not threading.main_thread():
        yield _noting[0] if _noting else None
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        _noting.append(Signals(reader))
        try:
            yield _noting[0]
        finally:
            _noting.clear()
            signal.set_wakeup_fd(wakeup)
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def was_interrupted() -> bool:
    """Whether a signal was noted."""
    return bool(_noting) and _noting[0].first is not None


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if a signal was noted."""
    if was_interrupted():
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
