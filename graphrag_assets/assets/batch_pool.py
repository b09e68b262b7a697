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
UNITS_IN_FLIGHT = 2_000
"""Maximum text units of the batches that are in memory together; a larger batch is alone."""
_NAMES = 3
_SECONDS_BETWEEN_CANCELS = 0.1


class BatchPool:
    """Limits the text units of batches that are in memory together."""

    def __init__(self, max_units: int = UNITS_IN_FLIGHT) -> None:
        self.canceled = False
        self._max_units, self._units = max_units, 0
        self._reading, self._room = threading.Lock(), threading.Condition()

    @contextlib.contextmanager
    def place(self) -> Iterator[Callable[[int], None]]:
        """A place for one batch; yields the function to call with the number of its text units, once they are read.

        One batch at a time is read. That function then waits until the text units fit beside those of the others.
        """
        n_inside = 0

        def admit(n_units: int) -> None:
            nonlocal n_inside
            with self._room:
                self._room.wait_for(
                    lambda: self.canceled or not self._units or self._units + n_units <= self._max_units
                )
                self._raise_if_canceled()
                self._units += n_units
                n_inside = n_units
            reading.close()

        with contextlib.ExitStack() as reading:
            reading.enter_context(self._reading)
            self._raise_if_canceled()
            try:
                yield admit
            finally:
                with self._room:
                    self._units -= n_inside
                    self._room.notify_all()

    def cancel(self) -> None:
        """Let no batch begin to make calls."""
        self.canceled = True
        with self._room:
            self._room.notify_all()

    def _raise_if_canceled(self) -> None:
        if self.canceled:
            raise CancelledError


def batches_at_once(settings: Settings) -> int:
    """How many batches are worked on at once: with a chat model enough to keep it busy, otherwise one."""
    by_model = settings.choices.extraction == "model"
    return settings.concurrency if by_model else 1


def work_on(
    batches: Sequence[str],
    work: Callable[[str, BatchPool], Result],
    at_once: int,
    is_last: Callable[[Result | Exception], bool] = lambda _: False,
) -> Generator[tuple[str, Result | Exception], None, None]:
    """Yield each batch with its result or its error, as they complete; `at_once`: the maximum number in progress.

    After a result that `is_last` no batch begins; those in progress are completed, as far as they come: what they have
    paid for is not left. Logs every few seconds which batches are in progress. Ending the iteration early cancels them.
    """
    pool, threads = BatchPool(), set[threading.Thread]()

    def run(batch: str) -> Result | Exception:
        threads.add(threading.current_thread())
        try:
            return work(batch, pool)
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
            pool.cancel()
            executor.shutdown(wait=False, cancel_futures=True)
            while any(future.running() for future in left):
                for thread in threads:  # one may just be about to make calls
                    cancel_calls(thread)
                wait(left, _SECONDS_BETWEEN_CANCELS)


def _in_progress(batches: Sequence[str]) -> str:
    more = f" and {len(batches) - _NAMES} more" if len(batches) > _NAMES else ""
    return f"batches (in progress: {', '.join(batches[:_NAMES])}{more})"
