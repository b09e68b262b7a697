"""The base class of options of the pipeline: pydantic checks them, and its errors become one sentence."""

from dataclasses import fields
from typing import Any, TypeVar

from pydantic import ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from graphrag_assets.errors import SettingsError

Self = TypeVar("Self", bound="CheckedOptions")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class CheckedOptions:
    """Base of the option classes.

    Raises:
        SettingsError: a value is not allowed, or there is no option of that name.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _explain_errors(cls: type[Self], given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            names, place = [field.name for field in fields(cls)], first["loc"][0]
            if first["type"].startswith("unexpected"):
                raise SettingsError(f"{cls.__name__} has no option {place}, only {', '.join(names)}.") from None
            name = names[place] if isinstance(place, int) else place
            allowed = first["msg"].removeprefix("Input should be ")
            raise SettingsError(f"{cls.__name__}: {name} is {first['input']!r}; it must be {allowed}.") from None
