"""Steps whose errors say what to do and show no secret: Dagster records an error with all its causes."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, cast

import dagster as dg

from graphrag_assets.errors import GraphRAGError, masked_errors

P = ParamSpec("P")
R = TypeVar("R")


def masked(compute: Callable[P, R]) -> Callable[P, R]:
    """`compute`, a step's function or generator function, that fails with the message of our errors alone.

    Secrets in errors are masked. Nothing is retried: each message names a remedy that a person applies.
    """
    guard: Any = _generating if inspect.isgeneratorfunction(compute) else _failures()
    return cast(Callable[P, R], guard(compute))


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    try:
        with masked_errors():
            yield
    except GraphRAGError as error:
        raise dg.Failure(str(error), allow_retries=False) from error  # the UI shows the description first


def _generating(compute: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(compute)
    def generate(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        with _failures():
            yield from cast(Iterator[Any], compute(*args, **kwargs))

    return cast(Callable[P, R], generate)
