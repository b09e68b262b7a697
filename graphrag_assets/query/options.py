"""Options of searches are checked when they are given: an error names the option, its value, what is allowed."""

import math
from typing import Any

from graphrag_assets.errors import QueryError

MOST = 1_000_000_000  # far beyond any use, and what DuckDB takes as a limit


def check_whole(options: Any, *names: str, least: int | None = 0, most: int = MOST) -> None:
    """The options of these names are whole numbers from `least` to `most`; any, where `least` is None.

    Raises:
        QueryError: one is not.
    """
    for name in names:
        value = getattr(options, name)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or (least is not None and not least <= value <= most):
            bounds = "" if least is None else f" from {least:,} to {most:,}"
            raise _rejected(name, value, f"a whole number{bounds}")


def check_number(options: Any, *names: str) -> None:
    """The options of these names are finite numbers.

    Raises:
        QueryError: one is not.
    """
    for name in names:
        if not _is_number(getattr(options, name)):
            raise _rejected(name, getattr(options, name), "a number")


def check_shares(options: Any, *names: str) -> None:
    """The options of these names are parts of a whole: each from 0 to 1, and together at most 1.

    Raises:
        QueryError: they are not.
    """
    for name in names:
        value = getattr(options, name)
        if not _is_number(value) or not 0 <= value <= 1:
            raise _rejected(name, value, "a share from 0 to 1")
    shares = [getattr(options, name) for name in names]
    if sum(shares) > 1 + 1e-9:  # 0.7 + 0.2 + 0.1 is a little more than 1 in floats
        given = ", ".join(f"{name} is {share!r}" for name, share in zip(names, shares, strict=True))
        raise QueryError(f"These search options are shares of one whole: {given}; together they must be at most 1.")


def check_names(options: Any, *names: str) -> None:
    """The options of these names are lists of texts; they become tuples, a single text a tuple of one.

    Raises:
        QueryError: one is not.
    """
    for name in names:
        value = getattr(options, name)
        texts = (value,) if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise _rejected(name, value, "a list of texts")
        object.__setattr__(options, name, tuple(texts))


def check_text(options: Any, *names: str, optional: bool = False) -> None:
    """The options of these names are texts that say something, or None where `optional`.

    Raises:
        QueryError: one is not.
    """
    for name in names:
        value = getattr(options, name)
        if not (optional and value is None) and not (isinstance(value, str) and value.strip()):
            raise _rejected(name, value, "a text" + (", or None" if optional else ""))


def check_flags(options: Any, *names: str) -> None:
    """The options of these names are True or False.

    Raises:
        QueryError: one is not.
    """
    for name in names:
        if not isinstance(getattr(options, name), bool):
            raise _rejected(name, getattr(options, name), "True or False")


def check_choice(options: Any, name: str, *choices: str) -> None:
    """The option is one of the choices.

    Raises:
        QueryError: it is not.
    """
    if getattr(options, name) not in choices:
        raise _rejected(name, getattr(options, name), " or ".join(map(repr, choices)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _rejected(name: str, value: Any, allowed: str) -> QueryError:
    return QueryError(f"The search option {name} is {value!r}; it must be {allowed}.")
