"""A thread pool for SQL statements that run side by side: DuckDB uses one thread for a short statement."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from graphrag_assets.runtime.once_per_process import once_per_process

Result = TypeVar("Result")


def submit(work: Callable[[], Result]) -> "Future[Result]":
    """Start `work` in a thread. It must not wait for other submitted work: there are only four threads."""
    return _pool().submit(copy_context().run, work)


@once_per_process()
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(4, "graphrag search")
