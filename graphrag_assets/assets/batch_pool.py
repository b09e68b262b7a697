"""Works on several batches at once: their model calls share one pool, and each is committed when it is complete.

Small batches would otherwise leave the models idle: a batch of one file has one request in flight.
"""

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

from graphrag_assets.llm.event_loop import cancel_calls
from graphrag_assets.runtime.progress import SECONDS_BETWEEN_LINES, Progress
from graphrag_assets.settings import Settings

Result = TypeVar("Result")
_NAMES = 3
_SECONDS_BETWEEN_CANCELS = 0.1


class Reading:
    """Lets one batch at a time be read: conversion takes memory and processors, answers of models time alone."""

    def __init__(self) -> None:
        self.canceled = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Yield the turn of one batch; CancelledError once the run is canceled."""
        with self._lock:
            if self.canceled:
                raise CancelledError
            yield


def batches_at_once(settings: Settings) -> int:
    """How many batches are worked on at once: with a chat model enough to keep it busy, otherwise one."""
    by_model = settings.choices.extraction == "model"
    return settings.concurrency if by_model else 1


def work_on(
    batches: Sequence[str],
    work: Callable[[str, Reading], Result],
    at_once: int,
    is_last: Callable[[Result | Exception], bool] = lambda _: False,
) -> Generator[tuple[str, Result | Exception], None, None]:
    """Yield each batch with its result or its error, as they complete; `at_once`: the maximum number in progress.

    After a result that `is_last` no batch begins; those in progress are completed, as far as they come: what they have
    paid for is not left. Logs every few seconds which batches are in progress. Ending the iteration early cancels them.
    """
    reading, threads = Reading(), set[threading.Thread]()

    def run(batch: str) -> Result | Exception:
        threads.add(threading.current_thread())
        try:
            return work(batch, reading)
        except Exception as error:
            return error

    if min(at_once, len(batches)) <= 1:  # in this thread, where signals arrive
        for batch in batches:
            outcome = run(batch)
            yield batch, outcome
            if is_last(outcome):
                return
        return
    progress = Progress("batches", len(batches))
    with ThreadPoolExecutor(at_once, "batch") as executor:
        left = {executor.submit(copy_context().run, run, batch): batch for batch in batches}
        try:
            while left:
                progress.what = _in_progress([batch for future, batch in left.items() if future.running()])
                done, _ = wait(left, SECONDS_BETWEEN_LINES, FIRST_COMPLETED)
                for future in done:
                    batch, outcome = left.pop(future), future.result()
                    if is_last(outcome):
                        left = {future: batch for future, batch in left.items() if not future.cancel()}
                    yield batch, outcome
                    progress.advance()
                if not done:
                    progress.tell()
        finally:
            reading.canceled = True
            executor.shutdown(wait=False, cancel_futures=True)
            while any(future.running() for future in left):
                for thread in threads:  # one may just be about to make calls
                    cancel_calls(thread)
                wait(left, _SECONDS_BETWEEN_CANCELS)


def _in_progress(batches: Sequence[str]) -> str:
    more = f" and {len(batches) - _NAMES} more" if len(batches) > _NAMES else ""
    return f"batches (in progress: {', '.join(batches[:_NAMES])}{more})"
