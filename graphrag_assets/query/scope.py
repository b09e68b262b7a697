"""Scopes: the rows of an index that a filter allows. Excluded rows contribute to nothing, not even to counts.

What is hidden and what is absent are the same: a name is looked for only in what the rights allow, and a missing one is
ignored.

A filter on batches, documents or metadata allows text units. An entity or relationship is in the scope if one of them
names it; it is shown as these text units alone describe it (`redaction`). A report is used only if all its sources are
allowed. Published titles and descriptions are searched only if all their sources are allowed. The rarity of a word is
that in the whole index.
"""

import contextlib
import itertools
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from graphrag_assets.query.options import Filter, Value, pairs_of
from graphrag_assets.query.redaction import entities_in, relationships_in, times_in
from graphrag_assets.store.publication_reader import Reader

_TABLE_NUMBERS = itertools.count(1)
_OF_DOCUMENTS = "document_id IN (SELECT unnest($documents::VARCHAR[]))"
_OF_TYPES = "type IN (SELECT unnest($types::VARCHAR[]))"
_OF_RELATIONSHIP_TYPES = "type IN (SELECT unnest($relationships::VARCHAR[]))"


@dataclass(frozen=True, eq=False)
class Scope:
    """The rows that a filter allows in one publication.

    Their numbers are tables in the memory of the reader, where all of its connections see them: each is made when it is
    first used, and dropped with the scope.

    Attributes:
        documents: ids of allowed documents; None: text is not limited.
        types: types of allowed entities; None: all.
        relationship_types: types that a mention of an allowed relationship has; None: all.
        missing: a line for each missing name of the filter, or one if no document meets all of its conditions.
    """

    reader: Reader | None = None
    documents: Sequence[str] | None = None
    types: Sequence[str] | None = None
    relationship_types: Sequence[str] | None = None
    missing: Sequence[str] = ()
    _tables: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _lock: "threading.RLock" = field(default_factory=threading.RLock, init=False, repr=False)

    @property
    def is_everything(self) -> bool:
        return self.documents is None and self.types is None and self.relationship_types is None

    @property
    def limits_text(self) -> bool:
        """Whether text units are excluded, so that descriptions and numbers must be derived from the others."""
        return self.documents is not None

    def allows(self, kind: str, column: str) -> str:
        """Return SQL that is true for the rows whose `column`, a number of `kind`, is in the scope.

        Args:
            kind: text_unit, entity, relationship or community_report; entity_text and relationship_text: those whose
                published texts have allowed sources only.
        """
        limited = {
            "entity": self.limits_text or self.types is not None,
            "entity_text": self.limits_text or self.types is not None,
            "relationship": not self.is_everything,
        }
        return f"{column} IN (FROM {self._table(kind)})" if limited.get(kind, self.limits_text) else "true"

    def count(self, kind: str) -> int:
        """Return the number of entities or relationships, by `kind`, in the scope."""
        table = {"entity": "entities", "relationship": "relationships"}[kind]
        return self._reader.numbers(f"SELECT count(*) FROM {table} WHERE {self.allows(kind, 'human_readable_id')}", {})[
            0
        ]

    @property
    def edges(self) -> str:
        """The table `search.edges` with the relationships, degrees and weights of the scope.

        A weight is the sum of the strengths of the mentions in the scope, without the correction for chance
        co-occurrence, which would count text outside of it. In an index without mentions (an imported one) it is the
        published one if all sources are in the scope, else the number of text units.
        """
        return "search.edges" if self.is_everything else self._table("edges")

    @property
    def entities(self) -> str:
        """The table `entities` as the scope describes them."""
        if self.is_everything:
            return "entities"
        return f"""(
            SELECT e.* REPLACE (
                coalesce(s.title, e.title) AS title, coalesce(s.type, e.type) AS type, s.degree AS degree,
                coalesce(s.description, e.description) AS description, s.frequency AS frequency,
                NULL::BIGINT AS line_tokens
            ) FROM entities e JOIN {self._table("entities")} s USING (human_readable_id)
        )"""

    @property
    def relationships(self) -> str:
        """The table `relationships` as the scope describes them, with `predicates` and `over`.

        `predicates`: all types of a pair, with direction and date, where there are several or one is superseded; else
        the type. `over`: whether all are superseded.
        """
        predicates, over = "coalesce(nullif(r.relations, ''), r.type)", "r.valid_until IS NOT NULL"
        if not self.limits_text:
            return f"(SELECT r.*, {predicates} AS predicates, {over} AS over FROM relationships r)"
        return f"""(
            SELECT r.* REPLACE (
                source.title AS source, target.title AS target, coalesce(s.type, r.type) AS type,
                coalesce(s.description, r.description) AS description, s.weight AS weight, NULL::BIGINT AS line_tokens
            ), coalesce(s.predicates, {predicates}) AS predicates, coalesce(s.over, {over}) AS over
            FROM relationships r JOIN {self._table("relationships")} s USING (human_readable_id)
            JOIN {self.entities} source ON source.human_readable_id = r.source_number
            JOIN {self.entities} target ON target.human_readable_id = r.target_number
        )"""

    @property
    def claims(self) -> str:
        """The table `covariates` with `until`: the day from which another statement of the scope holds."""
        until = "CASE WHEN {0}.superseded_by IS NOT NULL THEN {0}.valid_until END"
        if not self.limits_text:
            return f"(SELECT c.*, {until.format('c')} AS until FROM covariates c)"
        same = f"{until.format('c')} IS NOT DISTINCT FROM {until.format('t')}"
        return f"""(
            SELECT c.* REPLACE (CASE WHEN {same} THEN c.line_tokens END AS line_tokens), {until.format("t")} AS until
            FROM covariates c LEFT JOIN {self._table("times")} t USING (id)
        )"""

    def _table(self, name: str) -> str:
        """Return a table of numbers, or of what the scope says of its rows, in the memory of the reader."""
        with self._lock:
            if name not in self._tables:
                query, table = self._query(name), f"memory.main.scope_{next(_TABLE_NUMBERS)}"
                lists = {"documents": self.documents, "types": self.types, "relationships": self.relationship_types}
                used = {parameter: values for parameter, values in lists.items() if f"${parameter}" in query}
                self._reader.numbers(f"CREATE TABLE {table} AS {query}", used)
                self._tables[name] = table
            return self._tables[name]

    def __del__(self) -> None:
        if self._tables:
            with contextlib.suppress(duckdb.Error), self._reader.connection.cursor() as cursor:
                cursor.execute("".join(f"DROP TABLE {table};" for table in self._tables.values()))

    def _query(self, name: str) -> str:
        """Return the SQL of a table; those of numbers are conditions on a published one."""
        number = "human_readable_id"
        match name:
            case "text_unit":
                table, conditions = "text_units", [_OF_DOCUMENTS]
            case "entity":
                table, conditions = "entities", [self._has_source("entity"), self._is_of_type()]
            case "entity_text":
                table, conditions = "entities", [self.allows("entity", number), f"NOT {self._is_partly('entity')}"]
            case "relationship":
                ends = [self.allows("entity", f"{end}_number") for end in ("source", "target")]
                table, conditions = "relationships", [*ends, self._has_source("relationship")]
                if self.relationship_types is not None:
                    stated = f"{_OF_RELATIONSHIP_TYPES} AND {self.allows('text_unit', 'text_unit_number')}"
                    mentions = f"SELECT relationship_number FROM relationship_mentions WHERE {stated}"
                    conditions.append(f"{number} IN ({mentions} AND relationship_number IS NOT NULL)")
            case "relationship_text":
                whole = f"NOT {self._is_partly('relationship')}"
                table, conditions = "relationships", [self._has_source("relationship"), whole]
            case "community_report":
                return self._reports()
            case "edges":
                return self._edges()
            case "entities":
                return entities_in(self.allows, self.edges)
            case "relationships":
                return relationships_in(self.allows, self.edges, self._table("times"))
            case _:
                return times_in(self.allows)
        return f"SELECT {number} FROM {table} WHERE {' AND '.join(conditions)}"

    def _has_source(self, kind: str) -> str:
        """Return SQL that is true for an entity or relationship with a text unit in the scope."""
        if not self.limits_text:
            return "true"
        allowed = self.allows("text_unit", "text_unit")
        return f"human_readable_id IN (SELECT {kind} FROM search.{kind}_text_units WHERE {allowed})"

    def _is_partly(self, kind: str, column: str = "human_readable_id") -> str:
        """Return SQL that is true for an entity or relationship with a text unit outside the scope."""
        allowed = self.allows("text_unit", "text_unit")
        return f"{column} IN (SELECT {kind} FROM search.{kind}_text_units WHERE NOT {allowed})"

    def _is_of_type(self) -> str:
        """Return SQL that is true for an entity that has one of the types according to the text units in the scope."""
        if self.types is None:
            return "true"
        return f"""
            CASE WHEN {self._is_partly("entity")} THEN human_readable_id IN (
                SELECT entity_number FROM (
                    SELECT entity_number, type, count(*) AS n FROM entity_mentions
                    WHERE {self.allows("text_unit", "text_unit_number")} AND entity_number IS NOT NULL GROUP BY ALL
                )
                QUALIFY row_number() OVER (
                    PARTITION BY entity_number ORDER BY type IN ('', 'UNKNOWN', 'CONCEPT', 'NAME'), n DESC, type
                ) = 1 AND {_OF_TYPES}
            ) ELSE {_OF_TYPES} END
        """

    def _reports(self) -> str:
        """Return the reports of communities whose members, inner relationships and claims have allowed sources only."""
        return f"""
            WITH touched AS (
                SELECT community FROM search.entity_communities WHERE {self._is_partly("entity", "entity")}
                UNION
                SELECT a.community
                FROM search.edges e
                JOIN search.entity_communities a ON a.entity = e.entity
                JOIN search.entity_communities b
                  ON b.entity = e.neighbor AND b.level = a.level AND b.community = a.community
                WHERE {self._is_partly("relationship", "e.relationship")}
                UNION
                SELECT m.community
                FROM covariates c JOIN search.entity_communities m ON m.entity IN (c.subject_number, c.object_number)
                WHERE NOT {self.allows("text_unit", "c.text_unit_number")}
            )
            SELECT human_readable_id FROM community_reports
            WHERE community IN (SELECT community FROM search.entity_communities) AND community NOT IN (FROM touched)
        """

    def _edges(self) -> str:
        weight = "weight"
        if self.limits_text:
            is_whole = self.allows("relationship_text", "relationship")
            weight = f"coalesce(strength, CASE WHEN {is_whole} THEN weight ELSE text_units END)"
        return f"""
            WITH units AS (
                SELECT relationship, count(*) AS text_units FROM search.relationship_text_units
                WHERE {self.allows("text_unit", "text_unit")} GROUP BY relationship
            ), stated AS (
                SELECT relationship_number AS relationship, sum(strength) AS strength FROM relationship_mentions
                WHERE {self.allows("text_unit", "text_unit_number")} GROUP BY relationship_number
            ), edges AS (
                SELECT entity, neighbor, relationship, {weight} AS weight
                FROM search.edges LEFT JOIN units USING (relationship) LEFT JOIN stated USING (relationship)
                WHERE {self.allows("relationship", "relationship")}
            ), degrees AS (
                SELECT entity, count(DISTINCT neighbor) AS degree FROM edges WHERE entity <> neighbor GROUP BY entity
            )
            SELECT e.*, coalesce(a.degree, 0) + coalesce(b.degree, 0) AS combined_degree
            FROM edges e LEFT JOIN degrees a ON a.entity = e.entity LEFT JOIN degrees b ON b.entity = e.neighbor
            ORDER BY ALL
        """

    @property
    def _reader(self) -> Reader:
        assert self.reader is not None  # only EVERYTHING has none, and it runs no query
        return self.reader


EVERYTHING = Scope()

_LONGEST = 200
_MAX_SCOPES = 16  # kept per publication; each has some bytes of memory per allowed row of the index


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
    for name in dict.fromkeys(names or ()):
        if name not in (allowed or ()) or not count([name]):
            missing.append(_not_there(f"{kind} type", name))
    return None if texts is None and count(allowed) == count(None) else allowed


_VALUES = """
unnest(CASE json_type(value) WHEN 'ARRAY' THEN json_extract(value, '$[*]') ELSE [value] END) ->> '$'
"""


def _documents(reader: Reader, filter: Filter, within: set[str] | None) -> tuple[set[str] | None, list[str]]:
    """Return the ids that a filter allows of `within` (None: all documents), and lines on names that are not in it."""
    # For each condition, what its names are called, its names, and SQL for those of a document.
    conditions: list[tuple[str, Sequence[Value] | None, str, str]] = [
        ("batch", filter.batches, "batch", ""),
        ("document", filter.documents, "unnest([id, title, source])", ""),
    ]
    for key, values in pairs_of(filter.metadata) or ():
        pointer = "/" + key.replace("~", "~0").replace("/", "~1")  # a JSON pointer allows any character in the key
        conditions.append((f"metadata {key!r}:", values, _VALUES, pointer))
    allowed, missing = within, list[str]()
    for what, names, sql, pointer in conditions:
        if names is not None:
            ids = _ids_by_name(reader, sql, pointer, [_plain(name) for name in names], within)
            missing += dict.fromkeys(_not_there(what, name) for name in names if _plain(name) not in ids)
            met = set[str]().union(*ids.values())
            allowed = met if allowed is None else allowed & met
    if filter.since or filter.as_of:
        dated, met = _ids_by_date(reader, filter)
        if dated.isdisjoint(dated if within is None else within):
            line = "The filter has a date, and no document there has one. Dates are read from front matter, columns, "
            missing.append(f"{line}metadata and names of files; see GRAPHRAG_DATE_COLUMN.")
        allowed = met if allowed is None else allowed & met
    if allowed is not None and allowed is not within and not allowed and not missing:
        missing.append("No document meets all conditions of the filter.")
    return allowed, missing


def _ids_by_name(
    reader: Reader, sql: str, pointer: str, names: Sequence[str], within: set[str] | None
) -> dict[str, set[str]]:
    """Return the ids of the documents of `within` that have each of the names; a name that none has is left out."""
    values = "SELECT *, json_extract(raw_data, $pointer) AS value FROM documents"
    rows = reader.rows(
        f"SELECT name, id FROM (SELECT {sql} AS name, id FROM ({values})) "
        "WHERE name IN (SELECT unnest($names::VARCHAR[]))",
        {"pointer": pointer, "names": names},
    )
    ids = dict[str, set[str]]()
    for name, id in rows.iter_rows():
        if within is None or id in within:
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
