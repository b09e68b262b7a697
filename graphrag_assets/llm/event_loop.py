"""One event loop in a thread of its own, for synchronous code that makes concurrent calls.

Connections and limits of a model's client live in one loop, whoever asks; so the process has one.
"""

import asyncio
import atexit
import functools
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")
_NAME = "graphrag-models"


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=_NAME, daemon=True)
    thread.start()
    atexit.register(_stop, loop, thread)
    return loop


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=5)


os.register_at_fork(after_in_child=_loop.cache_clear)  # a forked process has no such thread


def is_current() -> bool:
    """Whether this code runs in the loop itself, and must not wait for what is done there."""
    return threading.current_thread().name == _NAME


def submit(coroutine: Coroutine[Any, Any, Result]) -> "Future[Result]":
    """Start `coroutine`; cancelling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop())


def wait_for(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of `coroutine`, from code that is not asynchronous; works inside a running loop (notebooks) too."""
    future = submit(coroutine)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # an interrupted caller leaves nothing running
        raise
