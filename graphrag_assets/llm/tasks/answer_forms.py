"""Forms of models' answers: the schema of a request is strict, its answer is read as the model meant it."""

import functools
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator

from graphrag_assets.text.entities import unescape

# Allowed in JSON but not in text: control characters, and halves of surrogate pairs, which UTF-8 cannot encode.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def as_text(value: object) -> str:
    """Return a string without control characters, its HTML entities unescaped; digits; a list with commas; "" for
    None.
    """
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(text for text in map(as_text, value) if text)
    if not isinstance(value, str | int | float):
        raise ValueError("expected a text")
    return _UNPRINTABLE.sub("", unescape(str(value))).strip()


_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_OUT_OF = re.compile(r"\s*(?:/|out of|of)\s*(\d+)")


def on_scale(value: object, lowest: float, highest: float) -> float | None:
    """Return a number within the scale, also from `"7"`, `"8/10"` and `"8 out of 10"`; None if there is none.

    >>> on_scale("4/5", 1, 10), on_scale(12, 1, 10), on_scale("high", 1, 10)
    (8.0, 10, None)
    """
    number: float | None = None
    if isinstance(value, str):
        if digits := _NUMBER.search(value):
            number = float(digits.group().replace(",", "."))
            if (share := _OUT_OF.match(value, digits.end())) and int(share[1]):
                number *= highest / int(share[1])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    if number is None or math.isnan(number):
        return None
    return min(max(number, lowest), highest)


Text = Annotated[str, BeforeValidator(as_text)]
_WHOLE = WithJsonSchema({"type": "integer"})
Strength = Annotated[float | None, BeforeValidator(functools.partial(on_scale, lowest=1, highest=10)), _WHOLE]
Score = Annotated[float | None, BeforeValidator(functools.partial(on_scale, lowest=0, highest=100)), _WHOLE]
Stars = Annotated[float | None, BeforeValidator(functools.partial(on_scale, lowest=0, highest=5)), _WHOLE]
Rating = Annotated[
    float | None, BeforeValidator(functools.partial(on_scale, lowest=0, highest=10)), WithJsonSchema({"type": "number"})
]


def _terse(schema: dict[str, Any]) -> None:
    """Remove the titles and docstrings that pydantic adds: they cost tokens in every request."""
    schema.pop("title", None)
    schema.pop("description", None)
    for part in schema.get("properties", {}).values():
        part.pop("title", None)


class Form(BaseModel):
    """An object of an answer. `other_names`: alternative field names that models use; the case of none matters."""

    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra=_terse)
    other_names: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        meant = cls._field_names()
        renamed = {meant.get(name.lower(), name): value for name, value in data.items()}
        by_case = {name.lower(): value for name, value in data.items() if name.lower() in cls.model_fields}
        return renamed | by_case | {name: value for name, value in data.items() if name in cls.model_fields}

    @classmethod
    def _field_names(cls) -> Mapping[str, str]:
        """Return the fields by the names, in lower case, that answers may have for them."""
        return {**cls.other_names, **{name: name for name in cls.model_fields}}


class AnswerForm(Form):
    """A complete answer."""

    @model_validator(mode="before")
    @classmethod
    def _unwrap(cls, data: object) -> object:
        """Replace `{"result": {…}}` by its inner object, unless `result` is a field."""
        if isinstance(data, dict) and len(data) == 1:
            (name, inner), fields = next(iter(data.items())), cls._field_names().keys()
            if name.lower() not in fields and isinstance(inner, dict) and fields & {key.lower() for key in inner}:
                return inner
        return data


class RecordsForm(AnswerForm):
    """An answer that consists of lists of records."""

    @property
    def n_records(self) -> int:
        """The number of records in all lists."""
        return sum(len(value) for value in self.__dict__.values() if isinstance(value, list))
