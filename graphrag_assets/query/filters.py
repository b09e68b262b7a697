"""Filters: which part of an index a search may see. What a filter leaves out shows nowhere, not even in numbers."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphrag_assets.errors import QueryError
from graphrag_assets.query.scope import EVERYTHING, Scope, size
from graphrag_assets.store.publication_reader import Reader

__all__ = ["EVERYTHING", "Filter", "Scope", "scope_of"]

Value = str | int | float | bool

_SCOPES_KEPT = 16  # a few bytes per row of the index each


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search is limited to; what is left empty limits nothing. The conditions hold together.

    Args:
        batches: names of batches.
        documents: ids, titles or sources of documents.
        entity_types: types of entities.
        metadata: for a key of `documents.raw_data` the value it must have, or several of which one is enough. Of a
            list in raw_data one element is enough.
    """

    batches: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    entity_types: tuple[str, ...] = ()
    metadata: Mapping[str, Value | Sequence[Value]] | tuple[tuple[str, tuple[Value, ...]], ...] = ()

    def __post_init__(self) -> None:
        for name in ("batches", "documents", "entity_types"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        object.__setattr__(self, "metadata", _pairs(self.metadata))


def scope_of(reader: Reader, filter: Filter | None) -> Scope:
    """What `filter` allows in the index of `reader`; kept with the reader for the next question.

    Raises:
        QueryError: the index has no such batch, document or type, or no such key or value of metadata.
    """
    if filter is None or filter == Filter():
        return EVERYTHING
    key = repr(filter)  # not the filter: to a dict 1 and True are the same
    kept = reader.scopes.get(key)
    if isinstance(kept, Scope):
        return kept
    _check_types(reader, filter.entity_types)
    scope = Scope(reader, _allowed_units(reader, filter), filter.entity_types)
    while len(reader.scopes) >= _SCOPES_KEPT:
        reader.scopes.pop(next(iter(reader.scopes)), None)
    reader.scopes[key] = scope
    return scope


def _allowed_units(reader: Reader, filter: Filter) -> np.ndarray | None:
    chosen = [
        *([_of_batches(reader, filter.batches)] if filter.batches else []),
        *([_of_names(reader, filter.documents)] if filter.documents else []),
        *(_of_metadata(reader, key, values) for key, values in _pairs(filter.metadata)),
    ]
    if not chosen:
        return None
    found = reader.arrays(
        "SELECT human_readable_id FROM text_units WHERE document_id IN (SELECT unnest($documents::VARCHAR[]))",
        {"documents": sorted(set.intersection(*chosen))},
    )
    units = np.zeros(size(reader, "text_units"), bool)
    units[found["human_readable_id"]] = True
    return units


def _of_batches(reader: Reader, batches: Sequence[str]) -> set[str]:
    rows = reader.rows(
        "SELECT id, batch FROM documents WHERE batch IN (SELECT unnest($batches::VARCHAR[]))", {"batches": batches}
    )
    unknown = [batch for batch in batches if batch not in set(rows["batch"])]
    if unknown:
        raise _no_such("batch", unknown, reader.rows("SELECT DISTINCT batch FROM documents").to_series().to_list())
    return set(rows["id"])


def _of_names(reader: Reader, names: Sequence[str]) -> set[str]:
    rows = reader.rows(
        """
        WITH names AS (SELECT unnest($names::VARCHAR[]) AS name)
        SELECT id, title, source FROM documents
        WHERE id IN (FROM names) OR title IN (FROM names) OR source IN (FROM names)
        """,
        {"names": names},
    )
    known = {*rows["id"], *rows["title"], *rows["source"]}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise _no_such("document", unknown, reader.rows("SELECT title FROM documents").to_series().to_list())
    return set(rows["id"])


def _of_metadata(reader: Reader, key: str, values: Sequence[Value]) -> set[str]:
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")  # a JSON pointer: whatever the key is made of
    rows = reader.rows(
        "SELECT id, json_extract(raw_data, $pointer)::VARCHAR AS value FROM documents "
        "WHERE json_extract(raw_data, $pointer) IS NOT NULL",
        {"pointer": pointer},
    )
    if rows.is_empty():
        keys = reader.rows("SELECT DISTINCT unnest(json_keys(raw_data)) FROM documents WHERE raw_data IS NOT NULL")
        raise _no_such("metadata key", [key], keys.to_series().to_list() if keys.width else [])
    wanted = {_plain(value) for value in values}
    given = {value: _alternatives(value) for value in set(rows["value"])}
    existing = set().union(*given.values())
    unknown = [value for value in values if _plain(value) not in existing]
    if unknown:
        raise _no_such(f"value of {key!r} in the metadata", unknown, sorted(existing))
    return {id for id, value in rows.iter_rows() if not wanted.isdisjoint(given[value])}


def _alternatives(value: str) -> set[str]:
    """A value of raw_data, given as JSON, in the form in which values are compared; of a list its elements."""
    parsed = json.loads(value)
    return {_plain(one) for one in (parsed if isinstance(parsed, list) else [parsed])}


def _plain(value: Any) -> str:
    """A value as text: structured files rarely tell 1866 from "1866"."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _check_types(reader: Reader, types: Sequence[str]) -> None:
    existing = reader.rows("SELECT DISTINCT type FROM entities").to_series().to_list() if types else []
    if unknown := [one for one in types if one not in existing]:
        raise _no_such("entity type", unknown, existing)


def _no_such(what: str, unknown: Sequence[Any], existing: Sequence[Any]) -> QueryError:
    names = sorted({str(name) for name in existing if name is not None})
    near = [match for name in unknown for match in difflib.get_close_matches(str(name), names, 3)]
    shown = list(dict.fromkeys([*near, *names]))[:10]
    more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return QueryError(
        f"The filter asks for the {what} {', '.join(map(repr, unknown))}, which the index does not have. "
        f"It has: {', '.join(shown) or 'none'}{more}."
    )


def _texts(name: str, given: Any) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(text, str) for text in texts):
        raise QueryError(f"The filter {name} is {given!r}; it must be a text or a list of texts.")
    return texts


def _pairs(given: Any) -> tuple[tuple[str, tuple[Value, ...]], ...]:
    """Keys with the values allowed for them, sorted by key: hashable, and equal whatever the order they came in."""
    try:
        pairs = sorted(dict(given).items())
    except (TypeError, ValueError):
        raise QueryError(f"The filter metadata is {given!r}; it must map keys to a value or several.") from None
    found = []
    for key, value in pairs:
        values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
        if not isinstance(key, str) or not values or not all(isinstance(one, Value) for one in values):
            raise QueryError(
                f"The filter metadata has {key!r}: {value!r}; it must be a text, a number or a truth value."
            )
        found.append((key, values))
    return tuple(found)
