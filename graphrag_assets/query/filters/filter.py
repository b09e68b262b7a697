"""Filters: the part of an index that a search may see. Excluded rows contribute to nothing, not even to counts."""

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import PlainValidator
from pydantic.dataclasses import dataclass

from graphrag_assets.errors import InvalidOption, QueryError
from graphrag_assets.query.filters.scope import EVERYTHING, Scope, size
from graphrag_assets.query.option_types import FirstDay, LastDay, OptionalTexts, Options
from graphrag_assets.store.publication_reader import Reader

Value = str | int | float | bool

_MAX_SCOPES = 16  # kept per publication; each has a few bytes per row of the index


def _pairs(given: Any) -> tuple[tuple[str, tuple[Value, ...]], ...] | None:
    """Keys with the values allowed for them, sorted by key: hashable, and equal in whatever order they were given."""
    if given is None:
        return None
    try:
        pairs = sorted(dict(given).items())
    except (TypeError, ValueError):
        raise QueryError(f"The filter metadata is {given!r}; it must map keys to one value or several.") from None
    found = []
    for key, value in pairs:
        values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
        if not isinstance(key, str) or not all(isinstance(one, Value) for one in values):
            raise QueryError(
                f"The filter metadata has {key!r}: {value!r}; it must be a text, a number or a truth value."
            )
        found.append((key, values))
    return tuple(found)


Metadata = Annotated[
    Mapping[str, Value | Sequence[Value]] | tuple[tuple[str, tuple[Value, ...]], ...] | None, PlainValidator(_pairs)
]


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

    noun: ClassVar[str] = "filter"

    batches: OptionalTexts = None
    documents: OptionalTexts = None
    entity_types: OptionalTexts = None
    relationship_types: OptionalTexts = None
    metadata: Metadata = None
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
    units = _allowed_units(reader, filter)
    for kind, types in (("entity", filter.entity_types), ("relationship", filter.relationship_types)):
        _check_types(Scope(reader, units), kind, types or ())
    scope = Scope(reader, units, filter.entity_types, filter.relationship_types)
    while len(reader.scopes) >= _MAX_SCOPES:
        reader.scopes.pop(next(iter(reader.scopes)), None)
    reader.scopes[key] = scope
    return scope


class _Condition(NamedTuple):
    """A condition on documents.

    Attributes:
        documents: ids of the documents that meet it.
        what: what its values are, such as "batch".
        unknown: those of its values that no document of the index has.
        values: the values that the documents with these ids have, for the error message; None: all documents.
    """

    documents: set[str]
    what: str = ""
    unknown: Sequence[Any] = ()
    values: Callable[[set[str] | None], Sequence[Any]] = lambda _: ()


def _allowed_units(reader: Reader, filter: Filter) -> np.ndarray | None:
    conditions = [
        *([_of_batches(reader, filter.batches)] if filter.batches is not None else []),
        *([_of_names(reader, filter.documents)] if filter.documents is not None else []),
        *(_of_metadata(reader, key, values) for key, values in _pairs(filter.metadata) or ()),
        *([_of_dates(reader, filter.since, filter.as_of)] if filter.since or filter.as_of else []),
    ]
    if not conditions:
        return None
    for condition in conditions:
        if condition.unknown:  # the message names nothing that the other conditions hide
            others = [other.documents for other in conditions if other is not condition]
            existing = condition.values(set.intersection(*others) if others else None)
            raise _no_such(condition.what, condition.unknown, existing)
    found = reader.frame(
        "SELECT human_readable_id FROM text_units WHERE document_id IN (SELECT unnest($documents::VARCHAR[]))",
        {"documents": sorted(set.intersection(*(condition.documents for condition in conditions)))},
    )
    units = np.zeros(size(reader, "text_units"), bool)
    units[found["human_readable_id"].to_numpy()] = True
    return units


def _of_batches(reader: Reader, batches: Sequence[str]) -> _Condition:
    rows = reader.rows(
        "SELECT id, batch FROM documents WHERE batch IN (SELECT unnest($batches::VARCHAR[]))", {"batches": batches}
    )
    unknown = [batch for batch in batches if batch not in set(rows["batch"])]
    return _Condition(set(rows["id"]), "batch", unknown, _values(reader, "batch"))


def _of_names(reader: Reader, names: Sequence[str]) -> _Condition:
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
    return _Condition(set(rows["id"]), "document", unknown, _values(reader, "title"))


def _of_metadata(reader: Reader, key: str, values: Sequence[Value]) -> _Condition:
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")  # a JSON pointer allows any character in the key
    rows = reader.rows(
        "SELECT id, json_extract(raw_data, $pointer)::VARCHAR AS value FROM documents "
        "WHERE json_extract(raw_data, $pointer) IS NOT NULL",
        {"pointer": pointer},
    )
    if rows.is_empty():
        return _Condition(set(), "metadata key", [key], _values(reader, "unnest(json_keys(raw_data))"))
    wanted = {_plain(value) for value in values}
    given = {value: _alternatives(value) for value in set(rows["value"])}
    existing = set().union(*given.values())
    unknown = [value for value in values if _plain(value) not in existing]
    return _Condition(
        {id for id, value in rows.iter_rows() if not wanted.isdisjoint(given[value])},
        f"value of {key!r} in the metadata",
        unknown,
        lambda ids: sorted({one for id, value in rows.iter_rows() if ids is None or id in ids for one in given[value]}),
    )


def _of_dates(reader: Reader, since: date | str | None, as_of: date | str | None) -> _Condition:
    if not reader.has_dates:
        raise InvalidOption(
            "The filter has a date, but no document of the index has one. Dates are read from front matter, columns, "
            "metadata and names of files; see GRAPHRAG_DATE_COLUMN."
        )
    rows = reader.rows(
        "SELECT id FROM documents WHERE document_date BETWEEN coalesce($since, DATE '0001-01-01') "
        "AND coalesce($as_of, DATE '9999-12-31')",
        {"since": since, "as_of": as_of},
    )
    return _Condition(set(rows["id"]))


def _values(reader: Reader, expression: str) -> Callable[[set[str] | None], Sequence[Any]]:
    """The values of an expression over `documents`, of the documents with these ids; None: of all documents."""

    def values(ids: set[str] | None) -> Sequence[Any]:
        rows = reader.rows(
            f"SELECT DISTINCT {expression} AS value FROM documents "
            "WHERE $ids::VARCHAR[] IS NULL OR id IN (SELECT unnest($ids::VARCHAR[]))",
            {"ids": None if ids is None else sorted(ids)},
        )
        return rows["value"].to_list()

    return values


def _alternatives(value: str) -> set[str]:
    """A JSON value of raw_data in the form in which values are compared; the elements of a list."""
    parsed = json.loads(value)
    return {_plain(one) for one in (parsed if isinstance(parsed, list) else [parsed])}


def _plain(value: Any) -> str:
    """A value as text: structured files rarely distinguish 1866 from "1866"."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _check_types(visible: Scope, kind: str, types: Sequence[str]) -> None:
    """Raise a QueryError if the index has no such type of entities or relationships; it names those in the scope."""
    if not types:
        return
    assert visible.reader is not None
    table = {"entity": "entities", "relationship": "relationship_mentions"}[kind]
    existing = visible.reader.rows(f"SELECT DISTINCT type FROM {table} WHERE type <> ''")["type"].to_list()
    unknown = [one for one in types if one not in existing]
    if unknown and visible.limits_text:
        query = f"SELECT DISTINCT type FROM {kind}_mentions WHERE type <> '' AND "
        in_scope = visible.allows("text_unit", "text_unit_number"), visible.parameters("text_unit")
        existing = visible.reader.rows(query + in_scope[0], in_scope[1])["type"].to_list()
    if unknown:
        raise _no_such(f"{kind} type", unknown, existing)


def _no_such(what: str, unknown: Sequence[Any], existing: Sequence[Any]) -> InvalidOption:
    names = sorted({str(name) for name in existing if name is not None})
    near = [match for name in unknown for match in difflib.get_close_matches(str(name), names, 3)]
    shown = list(dict.fromkeys([*near, *names]))[:10]
    more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return InvalidOption(
        f"The filter names the {what} {', '.join(map(repr, unknown))}, which the index does not have. "
        f"The index has: {', '.join(shown) or 'none'}{more}."
    )
