"""A thread that takes all the writes that are waiting and performs them together."""

import atexit
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Job = TypeVar("Job")


class WriteBatcher(Generic[Job]):
    """Performs jobs in batches, in the order of submission; `write` performs one batch.

    The thread starts with the first job. An exception of `write` is that of all jobs of the batch.
    """

    def __init__(self, name: str, write: Callable[[Sequence[Job]], None]):
        self._name, self._write = name, write
        self._jobs: queue.SimpleQueue[tuple[Job, Future[None]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, job: Job) -> "Future[None]":
        """Queue a job; the future is done when it has been performed. A cancelled job is performed all the same."""
        done: Future[None] = Future()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
                atexit.register(self.stop)
            self._jobs.put((job, done))
        return done

    def stop(self) -> None:
        """Perform the waiting jobs and end the thread; the next job starts another."""
        with self._lock:
            if self._thread is not None:
                self._jobs.put(None)
                self._thread.join()
                self._thread = None
                atexit.unregister(self.stop)

    def _run(self) -> None:
        stopped = False
        while not stopped:
            waiting = [self._jobs.get()]
            while not self._jobs.empty():
                waiting.append(self._jobs.get())
            batch = [item for item in waiting if item is not None]
            stopped = len(batch) < len(waiting)
            if batch:
                self._perform(batch)

    def _perform(self, batch: "list[tuple[Job, Future[None]]]") -> None:
        error: Exception | None = None
        try:
            self._write([job for job, _ in batch])
        except Exception as raised:  # whatever it is, no caller may wait forever
            error = raised
        for _, done in batch:
            if done.set_running_or_notify_cancel():
                if error:
                    done.set_exception(error)
                else:
                    done.set_result(None)
