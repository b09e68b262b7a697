"""A thread pool for SQL statements that run side by side: DuckDB uses one thread for a short statement."""

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def submit(work: Callable[[], Result]) -> "Future[Result]":
    """Start `work` in a thread. It must not wait for other submitted work: there are only four threads."""
    return _pool().submit(work)


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(4, "graphrag search")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
