"""One process: values that it has once, whether it is a fork of one with threads, and its peak memory.

`functools.cache` does not make a value once: two threads that ask at the same time make two. The threads of polars and
DuckDB do not exist in a forked process, so what waits for these would never end.
"""

import functools
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from graphrag_assets.errors import GraphRAGError

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


def once_per_process(
    maxsize: int | None = None,
) -> Callable[[Callable[Arguments, Value]], Callable[Arguments, Value]]:
    """Have a function make one value per process and arguments; it must not ask for one itself.

    The `maxsize` values used last are kept; None: all.
    """

    def decorate(make: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
        caches: list[tuple[threading.Lock, Callable[..., Value]]] = [
            (threading.Lock(), functools.lru_cache(maxsize)(make))
        ]

        def begin_in_fork() -> None:
            # A thread that does not exist here may hold the lock. The parent's values are kept and not used: their end
            # would act on the connections and threads of the parent.
            caches.append((threading.Lock(), functools.lru_cache(maxsize)(make)))

        @functools.wraps(make)
        def value(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
            lock, values = caches[-1]
            with lock:
                return values(*args, **kwargs)

        os.register_at_fork(after_in_child=begin_in_fork)
        return value

    return decorate


_used, _left_behind = False, False


def use_threads() -> None:
    """Note that this process uses threads of libraries.

    Raises:
        GraphRAGError: the process is a fork of one that has used them.
    """
    global _used
    if _left_behind:
        raise GraphRAGError(
            "This process was forked from one that has read an index; the threads that reading needs are not in it. "
            'Start processes with multiprocessing.get_context("spawn"), or fork before the first question.'
        )
    _used = True


def _in_child() -> None:
    global _left_behind
    _left_behind = _left_behind or _used


os.register_at_fork(after_in_child=_in_child)


def restart_peak() -> None:
    """Reset the peak memory of this process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_megabytes(process: int | str = "self") -> int | None:
    """Maximum resident memory since the last `restart_peak` of the process, in MB; None where it is not measured."""
    files = Path("/proc") / str(process)
    if not os.access(files / "clear_refs", os.W_OK):
        return None
    peak = re.search(r"VmHWM:\s*(\d+) kB", (files / "status").read_text(encoding="ascii", errors="replace"))
    return round(int(peak[1]) * 1024 / 1e6) if peak else None
