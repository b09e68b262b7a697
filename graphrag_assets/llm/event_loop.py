"""An event loop in its own thread, for synchronous code that makes concurrent calls.

A process has one, because connections and limits of a model belong to one loop.
"""

import asyncio
import atexit
import queue
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from graphrag_assets.contracts.usage import UsageMeter
from graphrag_assets.llm.model_errors import stops_the_run
from graphrag_assets.runtime.processes import once_per_process
from graphrag_assets.runtime.progress import SECONDS_BETWEEN_LINES, Progress

Item = TypeVar("Item")
Result = TypeVar("Result")
_NAME = "graphrag-models"
_in_flight = WeakKeyDictionary[threading.Thread, set[Future[Any]]]()


@once_per_process()
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=_NAME, daemon=True)
    thread.start()
    atexit.register(_stop, loop, thread)
    return loop


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=5)


def is_current() -> bool:
    """Whether this code runs in the loop itself, where waiting for its results would block it."""
    return threading.current_thread().name == _NAME


def submit(coroutine: Coroutine[Any, Any, Result]) -> "Future[Result]":
    """Start `coroutine`; canceling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop())


def wait_for(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of `coroutine`, for synchronous code; also works inside a running loop, as in notebooks."""
    future = submit(coroutine)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # an interrupted caller leaves nothing running
        raise


def run_concurrently(
    work: Callable[[Item], Coroutine[Any, Any, Result]],
    items: Iterable[Item],
    what: str,
    meter: UsageMeter | None = None,
) -> Iterator[tuple[Item, Result | Exception]]:
    """Run `work` for all items at once; yields each item with its result or its error as they complete.

    Logs progress and usage every few seconds; `what` names the items there, `meter` counts the usage. Ending the
    iteration early cancels the remaining calls; so does an error that concerns the whole run, which is raised.
    """
    completed: queue.SimpleQueue[Future[Result]] = queue.SimpleQueue()
    futures: dict[Future[Result], Item] = {}
    in_flight = _in_flight.setdefault(threading.current_thread(), set())
    try:
        for item in items:
            future = submit(work(item))
            futures[future] = item
            in_flight.add(future)
            future.add_done_callback(completed.put)
        used = (lambda: meter.total) if meter else None
        progress = Progress(what, len(futures), used)
        for _ in futures:
            future = _next_of(completed, progress)
            error = future.exception()
            if isinstance(error, Exception) and stops_the_run(error):
                left = progress.total - progress.done
                raise type(error)(f"{error} Done: {progress.done} of {progress.total} {what}, {left} are left.")
            progress.advance()
            yield futures[future], error if isinstance(error, Exception) else future.result()
    finally:
        for future in futures:
            future.cancel()
        in_flight.difference_update(futures)


def cancel_calls(thread: threading.Thread) -> None:
    """Cancel the calls of a thread's `run_concurrently`, which then raises `CancelledError` there."""
    for call in list(_in_flight.get(thread, ())):
        call.cancel()


def _next_of(results: "queue.SimpleQueue[Result]", progress: Progress) -> Result:
    """Return the next result; logs progress while there is none."""
    while True:
        try:
            return results.get(timeout=SECONDS_BETWEEN_LINES)
        except queue.Empty:
            progress.tell()
