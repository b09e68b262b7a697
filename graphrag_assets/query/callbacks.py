"""Functions that a caller can pass to observe a search."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeVar

from graphrag_assets.contracts.answering import Mapped, Point, Usage
from graphrag_assets.errors import QueryError
from graphrag_assets.query.context import Context
from graphrag_assets.query.results import Failure

Value = TypeVar("Value")


class Call(NamedTuple):
    """An answer of a model: its category, as in `Answer.usage`, and what it used. Without calls: from the ledger."""

    category: str
    usage: Usage


Callback = Callable[[Value], Awaitable[None] | None]


@dataclass(frozen=True)
class Callbacks:
    """Functions called during a search, in the thread or the task that waits for its answer.

    They may be asynchronous. Any object with some of these methods works as well. An error that a function raises ends
    the search.

    Args:
        on_context: called with each context that was built; DRIFT builds several.
        on_token: called with each piece of the answer; makes the model stream it.
        on_map: called with the points of each part of the data (global search, DRIFT), in order of completion.
        on_reduce: called with the points that the answer is written from, before it is written.
        on_step: called with the category of each step that begins: build_context, response, map and so on.
        on_call: called with each answer of a model, and what it used.
        on_error: called with each call that failed while the search goes on without it.
    """

    on_context: Callback[Context] | None = None
    on_token: Callback[str] | None = None
    on_map: Callback[Mapped] | None = None
    on_reduce: Callback[Sequence[Point]] | None = None
    on_step: Callback[str] | None = None
    on_call: Callback[Call] | None = None
    on_error: Callback[Failure] | None = None


EVENTS = tuple(field.name for field in fields(Callbacks))


def checked_callbacks(callbacks: object) -> object:
    """The callbacks. Raises QueryError unless they are None, or an object with at least one of the functions."""
    functions = [getattr(callbacks, event, None) for event in EVENTS]
    if callbacks is not None and not isinstance(callbacks, Callbacks) and not any(map(callable, functions)):
        raise QueryError(
            f"The search option callbacks is {callbacks!r}; it must be Callbacks(…), or an object with one of "
            f"{', '.join(EVENTS)}."
        )
    return callbacks
