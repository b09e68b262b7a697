"""Filters: the part of an index that a search may see. Excluded rows contribute to nothing, not even to counts."""

import difflib
import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import PlainValidator
from pydantic.dataclasses import dataclass

from graphrag_assets.errors import QueryError
from graphrag_assets.query.filters.scope import EVERYTHING, Scope, size
from graphrag_assets.query.option_types import FirstDay, LastDay, Options, Texts
from graphrag_assets.store.publication_reader import Reader

Value = str | int | float | bool

_MAX_SCOPES = 16  # kept per publication; each has a few bytes per row of the index


def _pairs(given: Any) -> tuple[tuple[str, tuple[Value, ...]], ...]:
    """Keys with the values allowed for them, sorted by key: hashable, and equal in whatever order they were given."""
    try:
        pairs = sorted(dict(given).items())
    except (TypeError, ValueError):
        raise QueryError(f"The filter metadata is {given!r}; it must map keys to one value or several.") from None
    found = []
    for key, value in pairs:
        values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
        if not isinstance(key, str) or not values or not all(isinstance(one, Value) for one in values):
            raise QueryError(
                f"The filter metadata has {key!r}: {value!r}; it must be a text, a number or a truth value."
            )
        found.append((key, values))
    return tuple(found)


Metadata = Annotated[
    Mapping[str, Value | Sequence[Value]] | tuple[tuple[str, tuple[Value, ...]], ...], PlainValidator(_pairs)
]


@dataclass(frozen=True, kw_only=True)
class Filter(Options):
    """Limits a search. All conditions must hold; an empty one limits nothing.

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

    noun: ClassVar[str] = "filter"

    batches: Texts = ()
    documents: Texts = ()
    entity_types: Texts = ()
    relationship_types: Texts = ()
    metadata: Metadata = ()
    as_of: LastDay = None
    since: FirstDay = None


def scope_of(reader: Reader, filter: Filter | None) -> Scope:
    """The rows that `filter` allows in the publication of `reader`; kept with the reader for the next question.

    Raises:
        QueryError: the index has no such batch, document or type, no such key or value of metadata, or no dates.
    """
    if filter is None or filter == Filter():
        return EVERYTHING
    key = repr(filter)  # not the filter: 1 and True would be the same key
    kept = reader.scopes.get(key)
    if isinstance(kept, Scope):
        return kept
    _check_types(reader, "entity", "entities", filter.entity_types)
    _check_types(reader, "relationship", "relationship_mentions", filter.relationship_types)
    types = tuple(filter.entity_types), tuple(filter.relationship_types)
    scope = Scope(reader, _allowed_units(reader, filter), *types)
    while len(reader.scopes) >= _MAX_SCOPES:
        reader.scopes.pop(next(iter(reader.scopes)), None)
    reader.scopes[key] = scope
    return scope


def _allowed_units(reader: Reader, filter: Filter) -> np.ndarray | None:
    chosen = [
        *([_of_batches(reader, filter.batches)] if filter.batches else []),
        *([_of_names(reader, filter.documents)] if filter.documents else []),
        *(_of_metadata(reader, key, values) for key, values in _pairs(filter.metadata)),
        *([_of_dates(reader, filter.since, filter.as_of)] if filter.since or filter.as_of else []),
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
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")  # a JSON pointer allows any character in the key
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


def _of_dates(reader: Reader, since: date | None, as_of: date | None) -> set[str]:
    if not reader.has_dates:
        raise QueryError(
            "The filter has a date, but no document of the index has one. Dates are read from front matter, columns, "
            "metadata and names of files; see GRAPHRAG_DATE_COLUMN."
        )
    rows = reader.rows(
        "SELECT id FROM documents WHERE document_date BETWEEN coalesce($since, DATE '0001-01-01') "
        "AND coalesce($as_of, DATE '9999-12-31')",
        {"since": since, "as_of": as_of},
    )
    return set(rows["id"])


def _alternatives(value: str) -> set[str]:
    """A JSON value of raw_data in the form in which values are compared; the elements of a list."""
    parsed = json.loads(value)
    return {_plain(one) for one in (parsed if isinstance(parsed, list) else [parsed])}


def _plain(value: Any) -> str:
    """A value as text: structured files rarely distinguish 1866 from "1866"."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _check_types(reader: Reader, kind: str, table: str, types: Sequence[str]) -> None:
    existing = reader.rows(f"SELECT DISTINCT type FROM {table} WHERE type <> ''")["type"].to_list() if types else []
    if unknown := [one for one in types if one not in existing]:
        raise _no_such(f"{kind} type", unknown, existing)


def _no_such(what: str, unknown: Sequence[Any], existing: Sequence[Any]) -> QueryError:
    names = sorted({str(name) for name in existing if name is not None})
    near = [match for name in unknown for match in difflib.get_close_matches(str(name), names, 3)]
    shown = list(dict.fromkeys([*near, *names]))[:10]
    more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return QueryError(
        f"The filter names the {what} {', '.join(map(repr, unknown))}, which the index does not have. "
        f"The index has: {', '.join(shown) or 'none'}{more}."
    )
