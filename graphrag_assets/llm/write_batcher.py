"""A thread that takes all the work that waits and does it at once."""

import atexit
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

J = TypeVar("J")
R = TypeVar("R")


class Worker(Generic[J, R]):
    """Does jobs in groups, in the order in which they came; `do` gives one result per job of a group.

    The thread begins with the first job. An exception of `do`, as `explain` puts it, is that of the whole group.
    """

    def __init__(self, name: str, do: Callable[[Sequence[J]], Sequence[R]], explain: Callable[[Exception], Exception]):
        self._name, self._do, self._explain = name, do, explain
        self._jobs: queue.SimpleQueue[tuple[J, Future[R]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, job: J) -> "Future[R]":
        """The result of the job, some time."""
        done: Future[R] = Future()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
                atexit.register(self.stop)
            self._jobs.put((job, done))
        return done

    def stop(self) -> None:
        """Do what waits and end the thread; the next job begins another."""
        with self._lock:
            if self._thread is not None:
                self._jobs.put(None)
                self._thread.join()
                self._thread = None
                atexit.unregister(self.stop)

    def _work(self) -> None:
        for group in self._groups():
            results: Sequence[Any]
            try:
                results = self._do([job for job, _ in group])
            except Exception as error:  # whatever it is, nobody may wait for ever
                results = [self._explain(error)] * len(group)
            for (_, done), result in zip(group, results, strict=True):
                _finish(done, result)

    def _groups(self) -> Iterator[list[tuple[J, "Future[R]"]]]:
        """What is waiting, again and again, until there is a None."""
        while True:
            taken = [self._jobs.get()]
            while not self._jobs.empty():
                taken.append(self._jobs.get())
            group = [work for work in taken if work is not None]
            if group:
                yield group
            if len(group) < len(taken):
                return


def _finish(done: "Future[Any]", result: Any) -> None:
    if not done.set_running_or_notify_cancel():
        return  # who asked has been cancelled; the work is done all the same
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(result)
