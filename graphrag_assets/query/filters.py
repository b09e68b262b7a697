"""Filters: the part of an index that a search may see. Excluded rows contribute to nothing, not even to counts.

What is hidden and what is absent are the same: a name is looked for only in what the rights and the other conditions
allow, and a missing one is ignored.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import PlainValidator
from pydantic.dataclasses import dataclass

from graphrag_assets.errors import QueryError
from graphrag_assets.query.option_types import FirstDay, LastDay, OptionalTexts, Options
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader

Value = str | int | float | bool

_LONGEST = 200
_MAX_SCOPES = 16  # kept per publication; each has some bytes of memory per allowed row of the index


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


def scope_of(reader: Reader, filter: Filter | None, rights: Filter | None = None) -> Scope:
    """The rows of the publication of `reader` that a filter allows within `rights`; kept with the reader.

    `Scope.missing` has a line for each missing name of the filter.
    """
    filter, rights = filter or Filter(), rights or Filter()
    if filter == rights == Filter():
        return EVERYTHING
    key = repr((filter, rights))  # not the filters: 1 and True would be the same key
    kept = reader.scopes.get(key)
    if isinstance(kept, Scope):
        return kept
    within, _ = _documents(reader, rights, None)
    documents, missing = _documents(reader, filter, within)
    texts = None if documents is None or _are_all(reader, documents) else sorted(documents)
    entities = _both(filter.entity_types, rights.entity_types)
    relationships = _both(filter.relationship_types, rights.relationship_types)
    for one in filter.entity_types or ():
        if one not in (entities or ()) or not Scope(reader, texts, [one]).shows("entity"):
            missing.append(_not_there("entity type", one))
    for one in filter.relationship_types or ():
        if one not in (relationships or ()) or not Scope(reader, texts, None, [one]).shows("relationship"):
            missing.append(_not_there("relationship type", one))
    if texts is None and not Scope(reader, None, entities).hides("entity"):
        entities = None
    if texts is None and not Scope(reader, None, None, relationships).hides("relationship"):
        relationships = None
    scope = Scope(reader, texts, entities, relationships, missing)
    while len(reader.scopes) >= _MAX_SCOPES:
        reader.scopes.pop(next(iter(reader.scopes)), None)
    reader.scopes[key] = scope
    return scope


def _both(one: Sequence[str] | None, other: Sequence[str] | None) -> Sequence[str] | None:
    """The types that two filters allow."""
    return one if other is None else other if one is None else [name for name in one if name in other]


Ids = set[str]
Condition = tuple[Ids, Sequence[tuple[str, Ids]]]
"""The ids of the documents that meet a condition; and lines with the ids of documents without which they are true."""


def _documents(reader: Reader, filter: Filter, within: Ids | None) -> tuple[Ids | None, list[str]]:
    """The documents that a filter allows of those with these ids (None: all), and lines on names that are not there."""
    conditions = [
        *([_of_names(reader, "batch", ["batch"], filter.batches)] if filter.batches is not None else []),
        *(
            [_of_names(reader, "document", ["id", "title", "source"], filter.documents)]
            if filter.documents is not None
            else []
        ),
        *(_of_metadata(reader, key, values) for key, values in _pairs(filter.metadata) or ()),
        *([_of_dates(reader, filter)] if filter.since or filter.as_of else []),
    ]
    if not conditions:
        return within, []
    first = [] if within is None else [within]
    missing = []
    for condition in conditions:
        others = [*first, *(other[0] for other in conditions if other is not condition)]
        visible = set.intersection(*others) if others else None
        missing += [line for line, ids in condition[1] if not (ids if visible is None else ids & visible)]
    return set.intersection(*first, *(allowed for allowed, _ in conditions)), missing


def _are_all(reader: Reader, documents: Ids) -> bool:
    """Whether all text units, of which there are some, are of these documents."""
    allowed = "document_id IN (SELECT unnest($documents::VARCHAR[]))"
    query = f"SELECT count(*) > 0 AND count(*) = count(*) FILTER ({allowed}) FROM text_units"
    return reader.numbers(query, {"documents": sorted(documents)}) == [True]


def _of_names(reader: Reader, what: str, columns: Sequence[str], names: Sequence[str]) -> Condition:
    named = " UNION ALL ".join(f"SELECT {column} AS name, id FROM documents" for column in columns)
    rows = reader.rows(f"FROM ({named}) WHERE name IN (SELECT unnest($names::VARCHAR[]))", {"names": names})
    return _condition(what, names, rows.iter_rows())


def _of_metadata(reader: Reader, key: str, values: Sequence[Value]) -> Condition:
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")  # a JSON pointer allows any character in the key
    rows = reader.rows(
        "SELECT id, json_extract(raw_data, $pointer)::VARCHAR AS value FROM documents "
        "WHERE json_extract(raw_data, $pointer) IS NOT NULL",
        {"pointer": pointer},
    )
    given = {value: _alternatives(value) for value in set(rows["value"])}
    pairs = ((one, id) for id, value in rows.iter_rows() for one in given[value])
    return _condition(f"metadata {key!r}:", values, pairs)


def _of_dates(reader: Reader, filter: Filter) -> Condition:
    line = (
        "The filter has a date, and no document there has one. Dates are read from front matter, columns, metadata and "
        "names of files; see GRAPHRAG_DATE_COLUMN."
    )
    if not reader.has_dates:  # older versions published no dates
        return set(), [(line, set())]
    rows = reader.rows(
        "SELECT id, document_date BETWEEN coalesce($since, DATE '0001-01-01') AND coalesce($as_of, DATE '9999-12-31') "
        "AS allowed FROM documents WHERE document_date IS NOT NULL",
        {"since": filter.since, "as_of": filter.as_of},
    )
    return set(rows.filter("allowed")["id"]), [(line, set(rows["id"]))]


def _condition(what: str, names: Sequence[Value], pairs: Iterable[tuple[str, str]]) -> Condition:
    """The condition that a document has one of these names; `pairs`: names with the ids of documents that have them."""
    having: dict[str, Ids] = {_plain(name): set() for name in names}
    for name, id in pairs:
        if name in having:
            having[name].add(id)
    return set().union(*having.values()), [(_not_there(what, name), having[_plain(name)]) for name in names]


def _not_there(what: str, name: Value) -> str:
    return f"The filter names the {what[:_LONGEST]} {repr(name)[:_LONGEST]}, which is not there."


def _alternatives(value: str) -> set[str]:
    """A JSON value of raw_data in the form in which values are compared; the elements of a list."""
    parsed = json.loads(value)
    return {_plain(one) for one in (parsed if isinstance(parsed, list) else [parsed])}


def _plain(value: Any) -> str:
    """A value as text: structured files rarely distinguish 1866 from "1866"."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
