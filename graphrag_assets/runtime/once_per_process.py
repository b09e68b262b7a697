"""Values that a process has once, such as a pool of threads, whichever of its threads asks first.

`functools.cache` does not do this: two threads that ask at the same time make two values.
"""

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


class OncePerProcess(Generic[Arguments, Value]):
    """A function that makes one value per process and arguments; a forked process makes its own.

    Args:
        make: makes the value. It must not ask for a value of this function itself.
        maxsize: maximum number of values that are kept, those used last; None for all.
    """

    def __init__(self, make: Callable[Arguments, Value], maxsize: int | None = None) -> None:
        self._make, self._maxsize = make, maxsize
        self._inherited: list[Any] = []
        self._begin()
        os.register_at_fork(after_in_child=self._begin_in_fork)
        functools.update_wrapper(self, make)

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        """The value, made if there is none."""
        with self._lock:
            return self._values(*args, **kwargs)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._values: Callable[..., Value] = functools.lru_cache(self._maxsize)(self._make)

    def _begin_in_fork(self) -> None:
        # A thread that does not exist here may hold the lock. The parent's values are kept and not used: their end
        # would act on the connections and threads of the parent.
        self._inherited.append(self._values)
        self._begin()


def once_per_process(
    maxsize: int | None = None,
) -> Callable[[Callable[Arguments, Value]], OncePerProcess[Arguments, Value]]:
    """Decorate a function: see `OncePerProcess`."""
    return lambda make: OncePerProcess(make, maxsize)
