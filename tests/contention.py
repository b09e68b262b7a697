"""Lets a test act while another thread waits for a lock."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

R = TypeVar("R")
_DEADLINE_SECONDS = 120.0
_THREAD = "waiting-for-a-lock"


@contextlib.contextmanager
def waiting_for(lock: str, work: Callable[[], R]) -> Iterator["Future[R]"]:
    """Run `work` in a thread. The body begins when the thread waits for the lock of this name, or has ended.

    At the end, the thread has ended too.
    """
    reached = threading.Event()
    logger = logging.getLogger("filelock")  # it logs that a lock is held by another

    class Waits(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said = record.getMessage()
            is_held = said.startswith("Failed to immediately acquire") or "not acquired" in said
            if is_held and f"{lock}.lock" in said and record.threadName == f"{_THREAD}_0":
                reached.set()

    handler, level = Waits(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with ThreadPoolExecutor(1, _THREAD) as pool:
            future = pool.submit(work)
            future.add_done_callback(lambda _: reached.set())
            assert reached.wait(_DEADLINE_SECONDS), f"it neither waited for {lock} nor ended"
            yield future
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
