"""The options of searches: types with the values they allow, the dataclasses that all methods share.

pydantic checks the values. `Options` turns its errors into one sentence.
"""

import dataclasses
import difflib
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import date
from typing import Annotated, Any, Concatenate, ParamSpec, Self, TypeVar, get_type_hints

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.errors import InvalidOption, QueryError
from graphrag_assets.query.history import ConversationHistory, History
from graphrag_assets.text.iso_dates import first_day, last_day

Fields = ParamSpec("Fields")
OptionsOf = TypeVar("OptionsOf")
Owner = TypeVar("Owner")
Result = TypeVar("Result")
_OTHER_WORDS = dict.fromkeys(("conversation", "messages", "chat_history", "turns"), "history")
MAXIMUM = 1_000_000_000  # of whole numbers; DuckDB accepts it as a LIMIT


def _as_tuple(value: Any) -> Any:
    """Return a list as a tuple, a single text as a tuple of one; anything else unchanged."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _day(convert: Callable[[str], date]) -> Callable[[Any], date | None]:
    def day(value: Any) -> date | None:
        try:
            return None if value is None else convert(str(value))
        except ValueError:
            raise ValueError("It must be a day such as 1866-07-27, a month (1866-07) or a year (1866)") from None

    return day


Value = str | int | float | bool


def pairs_of(metadata: Any) -> tuple[tuple[str, tuple[Value, ...]], ...] | None:
    """Return the values allowed for each key, sorted by key: equal filters are the same, in whatever order."""
    if metadata is None:
        return None
    try:
        items = dict(metadata).items()
    except (TypeError, ValueError):
        raise ValueError("It must map keys to one value or several") from None
    pairs = [(key, value if isinstance(value, list | tuple | set | frozenset) else [value]) for key, value in items]
    for key, values in pairs:
        if not isinstance(key, str) or not all(isinstance(one, Value) for one in values):
            raise ValueError(f"{key!r} must be a text, and each value a text, a number or a truth value")
    return tuple(sorted((key, tuple(values)) for key, values in pairs))


Count = Annotated[int, Field(ge=0, le=MAXIMUM)]
OptionalCount = Annotated[int | None, Field(ge=0, le=MAXIMUM)]
PositiveCount = Annotated[int, Field(ge=1, le=MAXIMUM)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(pattern=r"\S")]
Texts = Annotated[Sequence[str], BeforeValidator(_as_tuple)]
OptionalTexts = Annotated[Sequence[str] | None, BeforeValidator(_as_tuple)]
FirstDay = Annotated[date | str | None, BeforeValidator(_day(first_day))]
LastDay = Annotated[date | str | None, BeforeValidator(_day(last_day))]
"""A date once it is validated."""
Seconds = Annotated[float | None, Field(gt=0, allow_inf_nan=False)]
Metadata = Annotated[
    Mapping[str, Value | Sequence[Value]] | tuple[tuple[str, tuple[Value, ...]], ...] | None, PlainValidator(pairs_of)
]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(strict=True, extra="forbid"))
class Options:
    """Base of the option classes.

    Raises:
        QueryError: a value is not allowed, or there is no option of that name.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _explain_errors(cls, arguments: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
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
        return f"An option is given by its name, such as {fields(kind)[0].name}=…."
    return f"The option {name} is {values.get(name)!r}. {first['msg'].removeprefix('Value error, ')}."


def _unknown_option(kind: type[Options], name: str) -> str:
    """Return the message for an unknown option: where it belongs, the nearest names, or all of them."""
    for field in fields(kind):
        if isinstance(field.default, Options) and hasattr(field.default, name):
            within = f"{field.name}={type(field.default).__name__}({name}=…)"
            return f"The option {name} is one of {field.name}: {within}."
    names = sorted(field.name for field in fields(kind))
    near = [word for word in [_OTHER_WORDS.get(name)] if word in names] or difflib.get_close_matches(name, names, 3)
    if near:
        return f"Unknown option {name}: did you mean {' or '.join(near)}?"
    return f"Unknown option {name}. The options are: {', '.join(names)}."


@dataclass(frozen=True, kw_only=True)
class Filter(Options):
    """Limits a search. All conditions must hold. None is no condition; an empty list allows nothing.

    Args:
        batches: names of batches.
        documents: ids, titles or sources of documents.
        entity_types: types of entities.
        relationship_types: types of relationships; one is enough where a relationship has several (column `types`).
        metadata: for a key of `documents.raw_data` the value it must have, or several of which one is enough. If
            raw_data has a list, one of its elements is enough.
        as_of: the latest date of documents, included; of a month (1866-07) or a year, its last day. Documents without a
            date are excluded.
        since: the earliest date of documents, included; likewise, the first day.
    """

    batches: OptionalTexts = None
    documents: OptionalTexts = None
    entity_types: OptionalTexts = None
    relationship_types: OptionalTexts = None
    metadata: Metadata = None
    as_of: LastDay = None
    since: FirstDay = None


def _exactly_a_filter(value: Any) -> Filter | None:
    """Return a filter; the options of a method are no filter, though their class is a subclass."""
    if value is None or type(value) is Filter:
        return value
    raise ValueError("It must be a Filter, such as Filter(batches=['reports'], since='1866')")


OptionalFilter = Annotated[Filter | None, PlainValidator(_exactly_a_filter)]


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed while others succeeded: the part of the search, what is missing, and the error."""

    part: str
    what: str
    error: str


class Callbacks:
    """The functions that a search calls. Here they do nothing: pass an object of a subclass that overrides some.

    They are called in the thread of the models' event loop, which waits for them: they must return at once. An error
    that one raises ends the search.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def on_call(self, category: str, usage: Usage) -> None:
        """Take what an answer of a model used, by category as in `Answer.usage`; one from the ledger has no calls."""

    def on_error(self, failure: Failure) -> None:
        """Take a call that has failed, or a name of the filter is missing, and the search goes on without it."""


@dataclass(frozen=True, kw_only=True)
class QuestionOptions(Filter):
    """Options of every question, answered or not.

    Args:
        history: earlier turns of the conversation, without which the question is rewritten to be understood.
        conversation_history_max_turns: number of earlier questions that are read, the newest.
        filter: limits the search to a part of the index, as its conditions do that are given as single options.
        rights: what the caller may see: a filter looks for its names only there.
        timeout: seconds after which the search ends with a QueryError that says what was done.
        callbacks: functions to call during the search; see `Callbacks`.
    """

    history: Annotated[History, PlainValidator(ConversationHistory.of)] = None
    conversation_history_max_turns: Count = 5
    filter: OptionalFilter = None
    rights: OptionalFilter = None
    timeout: Seconds = None
    callbacks: InstanceOf[Callbacks] = Callbacks()

    @model_validator(mode="after")
    def _one_filter(self) -> Self:
        names = [f.name for f in fields(Filter) if getattr(self, f.name) is not None]
        if names and self.filter is not None:
            raise QueryError(f"Give {', '.join(names)} inside the filter, or without one.")
        return self

    @property
    def combined_filter(self) -> Filter:
        """The filter, or the one that the single options form."""
        return self.filter or Filter(**{f.name: getattr(self, f.name) for f in fields(Filter)})


@dataclass(frozen=True, kw_only=True)
class CommonOptions(QuestionOptions):
    """Options of every method that answers.

    Args:
        response_type: the form of the answer in free text, such as "a list of 3 to 7 points".
        language: language of the answer; None: the language of the question.
        max_context_tokens: maximum number of tokens that one call reads.
    """

    response_type: Text = "multiple paragraphs"
    language: Text | None = None
    max_context_tokens: PositiveCount = 12_000


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
