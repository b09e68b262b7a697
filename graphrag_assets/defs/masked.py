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
    if not inspect.isgeneratorfunction(compute):
        return masked_errors()(compute)

    @functools.wraps(compute)
    def generate(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        with masked_errors():
            yield from cast(Iterator[Any], compute(*args, **kwargs))

    return cast(Callable[P, R], generate)
