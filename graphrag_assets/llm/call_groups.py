"""Model calls of several threads that are canceled together."""

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any

from graphrag_assets.runtime.progress import Pace


class CallGroup:
    """The calls in flight of the threads that have joined. Their lines on progress share one pace."""

    def __init__(self) -> None:
        self.canceled, self.pace = False, Pace()
        self._lock, self._calls = threading.Lock(), set[Future[Any]]()

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Within this block, calls of this thread belong to the group."""
        token = _group.set(self)
        try:
            yield
        finally:
            _group.reset(token)

    def add(self, call: Future[Any]) -> None:
        """Add a call, which is canceled if the group is."""
        with self._lock:
            if not self.canceled:
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
                return
        call.cancel()

    def cancel(self) -> None:
        """Cancel the calls in flight, and those that are added later."""
        with self._lock:
            self.canceled = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()


_group: ContextVar[CallGroup | None] = ContextVar("call_group", default=None)


def current_group() -> CallGroup | None:
    """The group that this thread has joined."""
    return _group.get()
