"""Functions that a caller can pass to observe a search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphrag_assets.contracts.answering import Mapped, Point
from graphrag_assets.errors import QueryError
from graphrag_assets.query.context import Context

EVENTS = ("on_context", "on_token", "on_map", "on_reduce")


@dataclass(frozen=True)
class Callbacks:
    """Functions called during a search, in the thread or the task that waits for its answer.

    Any object with some of these methods works as well. An error that a function raises ends the search.

    Args:
        on_context: called with each context that was built; DRIFT builds several.
        on_token: called with each piece of the answer; makes the model stream it.
        on_map: called with the points of each part of the data (global search, DRIFT), in order of completion.
        on_reduce: called with the points that the answer is written from, before it is written.
    """

    on_context: Callable[[Context], None] | None = None
    on_token: Callable[[str], None] | None = None
    on_map: Callable[[Mapped], None] | None = None
    on_reduce: Callable[[Sequence[Point]], None] | None = None


def checked_callbacks(callbacks: object) -> object:
    """The callbacks. Raises QueryError unless they are None, or an object with at least one of the functions."""
    functions = [getattr(callbacks, event, None) for event in EVENTS]
    if callbacks is not None and not isinstance(callbacks, Callbacks) and not any(map(callable, functions)):
        raise QueryError(
            f"The search option callbacks is {callbacks!r}; it must be Callbacks(…), or an object with one of "
            f"{', '.join(EVENTS)}."
        )
    return callbacks
