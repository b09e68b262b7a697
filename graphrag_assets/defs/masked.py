"""Steps and sensors whose errors show no secret: Dagster records the messages of an error and of all its causes."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, cast

from graphrag_assets.errors import masked_errors

P = ParamSpec("P")
R = TypeVar("R")


def masked(compute: Callable[P, R]) -> Callable[P, R]:
    """`compute`, a function or a generator function, with the secrets in its errors masked."""
    guard: Any = _generating if inspect.isgeneratorfunction(compute) else masked_errors()
    guarded = guard(compute)
    # Dagster links an asset to the file of its function's code, and to the line of the function that it wraps.
    guarded.__code__ = guarded.__code__.replace(co_filename=compute.__code__.co_filename)
    return cast(Callable[P, R], guarded)


def _generating(compute: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(compute)
    def generate(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        with masked_errors():
            yield from cast(Iterator[Any], compute(*args, **kwargs))

    return cast(Callable[P, R], generate)
