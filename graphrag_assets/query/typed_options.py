"""Methods whose keyword arguments are the fields of an options class."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints

from graphrag_assets.errors import InvalidOption, QueryError

Fields = ParamSpec("Fields")
Options = TypeVar("Options")
Owner = TypeVar("Owner")
Result = TypeVar("Result")


def takes(
    options: Callable[Fields, Options],
) -> Callable[[Callable[[Owner, str, Options], Result]], Callable[Concatenate[Owner, str, Fields], Result]]:
    """Let a method take the options as keyword arguments; its signature and its documentation have them too."""

    def decorate(method: Callable[[Owner, str, Options], Result]) -> Callable[Concatenate[Owner, str, Fields], Result]:
        @functools.wraps(method)
        def call(self: Owner, question: str, *args: Fields.args, **given: Fields.kwargs) -> Result:
            return method(self, question, options_of(options, *args, **given))

        hints, own = get_type_hints(options), inspect.signature(options).parameters.values()  # without constraints
        shown, (owner, question, _) = inspect.signature(method), inspect.signature(method).parameters.values()
        parameters = [owner, question, *(one.replace(annotation=hints[one.name]) for one in own)]
        call.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.getdoc(method)}\n\n{_documentation(options)}"
        return call

    return decorate


def options_of(kind: Callable[..., Options], *args: object, **given: object) -> Options:
    """The options.

    Raises:
        InvalidOption: one is not allowed. (A ValueError raised while pydantic validates would become pydantic's own.)
    """
    try:
        return kind(*args, **given)
    except QueryError as error:
        raise InvalidOption(str(error)) from None


def _documentation(options: Any) -> str:
    """The documentation of the options, from the classes that declare them."""
    classes = [kind for kind in reversed(inspect.getmro(options)) if "Args:" in (kind.__dict__.get("__doc__") or "")]
    return "\n\n".join(inspect.cleandoc(kind.__doc__ or "") for kind in classes)
