"""What a caller may be told while a search is under way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_assets.answering import Mapped, Point
from graphrag_assets.errors import QueryError
from graphrag_assets.query.context import Context

EVENTS = ("on_context", "on_token", "on_map", "on_reduce")


@dataclass(frozen=True)
class Callbacks:
    """Functions called while a search goes on, in the thread, or the task, that waits for its answer.

    Any other object with some of these methods will do. What a function raises ends the search.

    Args:
        on_context: a context has been built; DRIFT builds several.
        on_token: a piece of the answer has come. With it the answer is streamed from the model.
        on_map: a part of the data has been read (global search, DRIFT): its points, in the order they are done.
        on_reduce: the answer is about to be put together from these points.
    """

    on_context: Callable[[Context], None] | None = None
    on_token: Callable[[str], None] | None = None
    on_map: Callable[[Mapped], None] | None = None
    on_reduce: Callable[[Sequence[Point]], None] | None = None


def check_callbacks(callbacks: Any) -> None:
    """Raises QueryError unless it is None, or an object with one of the functions at least."""
    functions = [getattr(callbacks, event, None) for event in EVENTS]
    if callbacks is not None and not isinstance(callbacks, Callbacks) and not any(map(callable, functions)):
        raise QueryError(
            f"The search option callbacks is {callbacks!r}; it must be Callbacks(…), or an object with one of "
            f"{', '.join(EVENTS)}."
        )


def tell(callbacks: Any, event: str, what: Any) -> None:
    """Call the function for `event`, if there is one."""
    function = getattr(callbacks, event, None)
    if function is not None:
        function(what)
