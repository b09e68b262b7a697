"""Searches that do not wait for each other run side by side: DuckDB leaves short statements to one thread each."""

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

R = TypeVar("R")


def later(work: Callable[[], R]) -> "Future[R]":
    """The result of `work`, which begins now in a thread. Work must not wait for other work: threads are few."""
    return _pool().submit(work)


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(4, "graphrag search")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has no such threads
