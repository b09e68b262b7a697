"""The signals that a process has received: which one ends a command decides its exit status."""

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator


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
