"""Searches that do not wait for each other run side by side: DuckDB leaves short statements to one thread each."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

R = TypeVar("R")

_POOL = ThreadPoolExecutor(4, "graphrag search")


def later(work: Callable[[], R]) -> "Future[R]":
    """The result of `work`, which begins now in a thread. Work must not wait for other work: threads are few."""
    return _POOL.submit(work)
