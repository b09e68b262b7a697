"""An event loop in its own thread, for synchronous code that makes concurrent calls.

A process has one, because connections and limits of a model belong to one loop.
"""

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from graphrag_assets.runtime.once_per_process import once_per_process

Result = TypeVar("Result")
_NAME = "graphrag-models"


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
    """The result of `coroutine`, for synchronous code; also works inside a running loop, as in notebooks."""
    future = submit(coroutine)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # an interrupted caller leaves nothing running
        raise
