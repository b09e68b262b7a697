"""Scopes: the rows of an index that a filter allows.

A filter on batches, documents or metadata allows text units. An entity or relationship is in the scope if one of them
names it; it is shown as these text units alone describe it (`redaction`). A report is used only if all its sources are
allowed. Published titles and descriptions are searched only if all their sources are allowed. The rarity of a word is
that in the whole index.
"""

import contextlib
import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

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
        missing: a line for each missing name of the filter.
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

    def _table(self, name: str) -> str:
        """Return the table of a kind of rows, or of the edges, in the memory of the reader."""
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
        """Return the SQL of a table: conditions on a published one, except of reports and edges."""
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
            case _:
                return self._edges()
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
