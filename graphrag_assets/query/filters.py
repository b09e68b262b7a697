"""Filters: the part of an index that a search may see. Excluded rows contribute to nothing, not even to counts.

What is hidden and what is absent are the same: a name is looked for only in what the rights and the other conditions
allow, and a missing one is ignored.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import PlainValidator
from pydantic.dataclasses import dataclass

from graphrag_assets.errors import QueryError
from graphrag_assets.query.option_types import FirstDay, LastDay, OptionalTexts, Options
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader

__all__ = ["EVERYTHING", "Filter", "Metadata", "Scope", "scope_of"]

Value = str | int | float | bool

_LONGEST = 200
_MAX_SCOPES = 16  # kept per publication; each has some bytes of memory per allowed row of the index


def _pairs(metadata: Any) -> tuple[tuple[str, tuple[Value, ...]], ...] | None:
    """Return the values allowed for each key, sorted by key: equal filters are the same, in whatever order."""
    if metadata is None:
        return None
    try:
        items = sorted(dict(metadata).items())
    except (TypeError, ValueError):
        raise QueryError(f"The filter metadata is {metadata!r}; it must map keys to one value or several.") from None
    pairs = []
    for key, value in items:
        values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
        if not isinstance(key, str) or not all(isinstance(one, Value) for one in values):
            raise QueryError(
                f"The filter metadata has {key!r}: {value!r}; it must be a text, a number or a truth value."
            )
        pairs.append((key, values))
    return tuple(pairs)


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
    """Return the rows that a filter allows within `rights`, and a line for each missing name; kept with the reader."""
    filter, rights = filter or Filter(), rights or Filter()
    if filter == rights == Filter():
        return EVERYTHING
    key = repr((filter, rights))  # not the filters: 1 and True would be the same key
    if isinstance(scope := reader.scopes.get(key), Scope):
        return scope
    within, _ = _documents(reader, rights, None)
    documents, missing = _documents(reader, filter, within)
    texts = None if documents is None or _are_all(reader, documents) else sorted(documents)
    entities = _of_types(reader, "entity", filter.entity_types, rights.entity_types, texts, missing)
    relationships = _of_types(
        reader, "relationship", filter.relationship_types, rights.relationship_types, texts, missing
    )
    scope = Scope(reader, texts, entities, relationships, missing)
    while len(reader.scopes) >= _MAX_SCOPES:
        reader.scopes.pop(next(iter(reader.scopes)), None)
    reader.scopes[key] = scope
    return scope


def _of_types(
    reader: Reader,
    kind: str,
    names: Sequence[str] | None,
    rights: Sequence[str] | None,
    texts: Sequence[str] | None,
    missing: list[str],
) -> Sequence[str] | None:
    """Return the types of a kind that a filter allows within rights; None: all. Add lines on types that are missing."""

    def count(types: Sequence[str] | None) -> int:
        scope = Scope(reader, texts, types) if kind == "entity" else Scope(reader, texts, None, types)
        return scope.count(kind)

    allowed = names if rights is None else rights if names is None else [name for name in names if name in rights]
    for name in names or ():
        if name not in (allowed or ()) or not count([name]):
            missing.append(_not_there(f"{kind} type", name))
    return None if texts is None and count(allowed) == count(None) else allowed


_VALUES = """
unnest(CASE json_type(value) WHEN 'ARRAY' THEN json_extract(value, '$[*]') ELSE [value] END) ->> '$'
"""


def _documents(reader: Reader, filter: Filter, within: set[str] | None) -> tuple[set[str] | None, list[str]]:
    """Return the documents that a filter allows of `within` (ids; None: all), and lines on names that are not there."""
    # For each condition, what its names are called, its names, and SQL for those of a document.
    named: list[tuple[str, Sequence[Value] | None, str, str]] = [
        ("batch", filter.batches, "batch", ""),
        ("document", filter.documents, "unnest([id, title, source])", ""),
    ]
    for key, values in _pairs(filter.metadata) or ():
        pointer = "/" + key.replace("~", "~0").replace("/", "~1")  # a JSON pointer allows any character in the key
        named.append((f"metadata {key!r}:", values, _VALUES, pointer))
    conditions = list[dict[str, set[str]]]()  # ids by line: a document without any of them does not meet the condition
    for what, names, sql, pointer in named:
        if names is not None:
            ids = _ids_by_name(reader, sql, pointer, [_plain(name) for name in names])
            conditions.append({_not_there(what, name): ids.get(_plain(name), set()) for name in names})
    met = [set[str]().union(*condition.values()) for condition in conditions]
    if filter.since or filter.as_of:
        dated, allowed = _ids_by_date(reader, filter)
        line = "The filter has a date, and no document there has one. Dates are read from front matter, columns, "
        conditions.append({f"{line}metadata and names of files; see GRAPHRAG_DATE_COLUMN.": dated})
        met.append(allowed)
    if not met:
        return within, []
    first = [] if within is None else [within]
    missing = []
    for place, condition in enumerate(conditions):
        others = [*first, *met[:place], *met[place + 1 :]]
        missing += [line for line, ids in condition.items() if not ids.intersection(*others)]
    return set.intersection(*first, *met), missing


def _ids_by_name(reader: Reader, sql: str, pointer: str, names: Sequence[str]) -> dict[str, set[str]]:
    values = "SELECT *, json_extract(raw_data, $pointer) AS value FROM documents"
    rows = reader.rows(
        f"SELECT name, id FROM (SELECT {sql} AS name, id FROM ({values})) "
        "WHERE name IN (SELECT unnest($names::VARCHAR[]))",
        {"pointer": pointer, "names": names},
    )
    ids = dict[str, set[str]]()
    for name, id in rows.iter_rows():
        ids.setdefault(name, set()).add(id)
    return ids


def _ids_by_date(reader: Reader, filter: Filter) -> tuple[set[str], set[str]]:
    """Return the documents with a date, and those of them between the dates of the filter."""
    rows = reader.rows(
        "SELECT id, document_date BETWEEN coalesce($since, DATE '0001-01-01') AND coalesce($as_of, DATE '9999-12-31') "
        "AS allowed FROM documents WHERE document_date IS NOT NULL",
        {"since": filter.since, "as_of": filter.as_of},
    )
    return set(rows["id"]), set(rows.filter("allowed")["id"])


def _are_all(reader: Reader, documents: set[str]) -> bool:
    """Whether all text units, of which there are some, are of these documents."""
    allowed = "document_id IN (SELECT unnest($documents::VARCHAR[]))"
    query = f"SELECT count(*) > 0 AND count(*) = count(*) FILTER ({allowed}) FROM text_units"
    return reader.numbers(query, {"documents": sorted(documents)}) == [True]


def _not_there(what: str, name: Value) -> str:
    return f"The filter names the {what[:_LONGEST]} {repr(name)[:_LONGEST]}, which is not there."


def _plain(value: Value) -> str:
    """Return a value as text: structured files rarely distinguish 1866 from "1866"."""
    return value if isinstance(value, str) else json.dumps(value)
