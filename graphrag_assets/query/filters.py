"""Filters: which part of an index a search may see. What a filter leaves out shows nowhere, not even in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_assets.errors import QueryError
from graphrag_assets.store.published import Reader

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search is limited to; what is left empty limits nothing. The conditions hold together.

    Args:
        batches: names of batches.
        documents: ids, titles or sources of documents.
        entity_types: types of entities.
        metadata: for a key of `documents.raw_data` the value it must have, or several of which one is enough.
    """

    batches: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    entity_types: tuple[str, ...] = ()
    metadata: Mapping[str, Value | Sequence[Value]] | tuple[tuple[str, tuple[Value, ...]], ...] = ()

    def __post_init__(self) -> None:
        for name in ("batches", "documents", "entity_types"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        object.__setattr__(self, "metadata", _pairs(self.metadata))


@dataclass(frozen=True, slots=True)
class Scope:
    """What a filter allows in one published index."""

    is_everything: bool = True


EVERYTHING = Scope()


def scope_of(reader: Reader, filter: Filter | None) -> Scope:
    """What `filter` allows in the index of `reader`.

    Raises:
        QueryError: the index has no such batch, document, type, or key or value of metadata.
    """
    if filter is None or filter == Filter():
        return EVERYTHING
    raise NotImplementedError("filters are being built")


def _texts(name: str, given: Any) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise QueryError(f"The filter {name} is {given!r}; it must be a text or a list of texts.")
    return tuple(texts)


def _pairs(given: Any) -> tuple[tuple[str, tuple[Value, ...]], ...]:
    """Keys with the values allowed for them, sorted by key: hashable, and equal whatever the order they came in."""
    try:
        pairs = sorted(dict(given).items())
    except (TypeError, ValueError):
        raise QueryError(f"The filter metadata is {given!r}; it must map keys to a value or several.") from None
    found = []
    for key, value in pairs:
        values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
        if not isinstance(key, str) or not all(isinstance(one, Value) for one in values):
            raise QueryError(
                f"The filter metadata has {key!r}: {value!r}; a value is a text, a number or a truth value."
            )
        found.append((key, values))
    return tuple(found)
