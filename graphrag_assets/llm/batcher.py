"""The ledger's blocking work, in threads and in batches: one batch is what was added during the one before it.

The threads are daemons, which the end of the process does not wait for: a database may never reply. They stay for the
next work, because starting a thread holds up the event loop until the thread runs.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from graphrag_assets.runtime.once_per_process import once_per_process

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Performs all items that were added, one batch after another, in a background thread."""

    def __init__(self, perform: Callable[[list[Item]], Result]):
        self._perform = perform
        self._waiting: list[Item] = []
        self._next: Future[Result] | None = None  # of the waiting items, if they are about to be performed
        self._adding = threading.Lock()
        self._performing = threading.Lock()

    def add(self, *items: Item) -> Future[Result]:
        """Have the items performed with all that are waiting: the result of their batch."""
        with self._adding:
            self._waiting += items
            if self._next is None:
                self._next = in_background(self._perform_waiting)  # begins when this lock is free
            return self._next

    def defer(self, item: Item) -> None:
        """Have an item performed with the next one that is added."""
        with self._adding:
            self._waiting.append(item)

    @property
    def has_deferred(self) -> bool:
        """Whether an item waits for another one to be added."""
        return bool(self._waiting) and self._next is None

    def _perform_waiting(self) -> Result:
        with self._performing:
            with self._adding:
                items, self._waiting, self._next = self._waiting, [], None
            return self._perform(items)


def in_background(work: Callable[[], Result]) -> Future[Result]:
    """Do `work` in a daemon thread; canceling the future has no effect."""
    return _threads().submit(work)


class _Threads:
    """Threads that take work from one queue; another one is started if none is idle."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        done: Future[Result] = Future()
        done.set_running_or_notify_cancel()  # a canceled caller leaves the work to be done
        self._queue.put((work, done))
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._run, name="ledger", daemon=True).start()
        return done

    def _run(self) -> None:
        while True:
            work, done = self._queue.get()
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)
            del work, done  # an idle thread keeps no ledger
            self._idle.release()


@once_per_process()
def _threads() -> _Threads:
    return _Threads()
