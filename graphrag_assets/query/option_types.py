"""Types of search options with the values they allow, the base class of their dataclasses, and methods that take them.

pydantic checks the values. `Options` turns its errors into one sentence, built from the description of the field.
"""

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import date
from typing import Annotated, Any, ClassVar, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from graphrag_assets.errors import InvalidOption, QueryError
from graphrag_assets.text.iso_dates import first_day, last_day

Fields = ParamSpec("Fields")
OptionsOf = TypeVar("OptionsOf")
Owner = TypeVar("Owner")
Result = TypeVar("Result")
MAXIMUM = 1_000_000_000  # of whole numbers; DuckDB accepts it as a LIMIT


def _as_tuple(value: Any) -> Any:
    """Return a list as a tuple, a single text as a tuple of one; anything else unchanged."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Count = Annotated[int, Field(ge=0, le=MAXIMUM, description=f"a whole number from 0 to {MAXIMUM:,}")]
OptionalCount = Annotated[
    Annotated[int, Field(ge=0, le=MAXIMUM)] | None, Field(description=f"a whole number from 0 to {MAXIMUM:,}, or None")
]
PositiveCount = Annotated[int, Field(ge=1, le=MAXIMUM, description=f"a whole number from 1 to {MAXIMUM:,}")]
Seed = Annotated[int, Field(description="a whole number")]
Number = Annotated[float, Field(allow_inf_nan=False, description="a number")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, description="a share from 0 to 1")]
Flag = Annotated[bool, Field(description="True or False")]
Text = Annotated[str, Field(pattern=r"\S", description="a text")]
OptionalText = Annotated[Annotated[str, Field(pattern=r"\S")] | None, Field(description="a text, or None")]
Texts = Annotated[Sequence[str], BeforeValidator(_as_tuple), Field(description="a text or a list of texts")]
OptionalTexts = Annotated[
    Sequence[str] | None, BeforeValidator(_as_tuple), Field(description="a text or a list of texts, or None")
]
_DAY = Field(description="a day such as 1866-07-27, a month (1866-07), a year (1866), or None")
FirstDay = Annotated[date | str | None, BeforeValidator(lambda day: day if day is None else first_day(str(day))), _DAY]
LastDay = Annotated[date | str | None, BeforeValidator(lambda day: day if day is None else last_day(str(day))), _DAY]
"""A date once it is validated."""
Seconds = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False)] | None, Field(description="more than 0 seconds, or None")
]


def made_of(kind: "type[Options]") -> Callable[[Any], Any]:
    """Turn a dictionary, as JSON has it, into options of this kind; anything else stays as it is."""
    return lambda value: kind(**value) if isinstance(value, dict) else value


Self = TypeVar("Self", bound="Options")


@dataclass(frozen=True, kw_only=True, config=ConfigDict(strict=True, extra="forbid"))
class Options:
    """Base of the option classes.

    Raises:
        QueryError: a value is not allowed, or there is no option of that name.
    """

    noun: ClassVar[str] = "search option"

    @model_validator(mode="wrap")
    @classmethod
    def _explain_errors(cls: type[Self], arguments: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(arguments)
        except ValidationError as error:
            raise QueryError(_sentence(cls, error, getattr(arguments, "kwargs", None) or {})) from None


def _sentence(kind: type[Options], error: ValidationError, values: Mapping[str, Any]) -> str:
    """Return the first error of pydantic as one sentence; `values` are the keyword arguments."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "unexpected_keyword_argument":
        return _unknown_option(kind, name)
    if first["type"] == "unexpected_positional_argument":
        return f"A {kind.noun} is given by its name, such as {fields(kind)[0].name}=…."
    constraints = get_args(get_type_hints(kind, include_extras=True).get(name))
    allowed = next((one.description for one in constraints if isinstance(one, FieldInfo)), None)
    if allowed is None:
        return f"{kind.__name__}: {first['msg']}."
    return f"The {kind.noun} {name} is {values.get(name)!r}; it must be {allowed}."


_OTHER_WORDS = {"conversation": "history", "messages": "history", "chat_history": "history", "turns": "history"}


def _unknown_option(kind: type[Options], name: str) -> str:
    """Return the message for an unknown option: where it belongs, the nearest names, or all of them."""
    for field in fields(kind):
        if isinstance(field.default, Options) and hasattr(field.default, name):
            within = f"{field.name}={type(field.default).__name__}({name}=…)"
            return f"The {kind.noun} {name} is one of {field.name}: {within}."
    names = sorted(field.name for field in fields(kind))
    if _OTHER_WORDS.get(name) in names:
        near = [_OTHER_WORDS[name]]
    else:
        near = difflib.get_close_matches(name, names, 3) or [one for one in names if name in one]
    if near:
        return f"Unknown search option {name}: did you mean {' or '.join(near)}?"
    return f"Unknown search option {name}. The options are: {', '.join(names)}."


def takes(
    options: Callable[Fields, OptionsOf],
) -> Callable[[Callable[[Owner, str, OptionsOf], Result]], Callable[Concatenate[Owner, str, Fields], Result]]:
    """Let a method take the options as keyword arguments; its signature and its documentation have them too."""

    def decorate(
        method: Callable[[Owner, str, OptionsOf], Result],
    ) -> Callable[Concatenate[Owner, str, Fields], Result]:
        @functools.wraps(method)
        def call(self: Owner, question: str, *args: Fields.args, **values: Fields.kwargs) -> Result:
            return method(self, question, options_of(options, *args, **values))

        hints, signature = get_type_hints(options), inspect.signature(method)  # without constraints
        owner, question, _ = signature.parameters.values()
        parameters = [one.replace(annotation=hints[one.name]) for one in inspect.signature(options).parameters.values()]
        call.__signature__ = signature.replace(parameters=[owner, question, *parameters])  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.getdoc(method)}\n\n{_documentation(options)}"
        return call

    return decorate


def options_of(kind: Callable[..., OptionsOf], *args: object, **values: object) -> OptionsOf:
    """Return the options.

    Raises:
        InvalidOption: one is not allowed. (A ValueError raised while pydantic validates would become pydantic's own.)
    """
    try:
        return kind(*args, **values)
    except QueryError as error:
        raise InvalidOption(str(error)) from None


def _documentation(options: Any) -> str:
    """Return the documentation of the options, each once, from the classes that declare them."""
    entries = dict[str, str]()
    for kind in reversed(inspect.getmro(options)):
        arguments = inspect.cleandoc(kind.__dict__.get("__doc__") or "").partition("Args:\n")[2]
        entries |= {entry.partition(":")[0]: entry for entry in re.split(r"\n(?=    \S)", arguments) if entry}
    return "\n".join(["Args:", *entries.values()])
