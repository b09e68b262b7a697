"""Scopes: the rows of an index that a filter allows.

A filter on batches, documents or metadata allows text units. An entity or relationship is in the scope if one of them
names it; it is shown as these text units alone describe it (`redaction`). A report is used only if all its sources are
allowed. Published titles and descriptions are searched only if all their sources are allowed. The rarity of a word is
that in the whole index.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from graphrag_assets.store.publication_reader import Reader

_TABLES = {"entity": "entities", "relationship": "relationships", "community_report": "community_reports"}


@dataclass(frozen=True, eq=False)
class Scope:
    """The rows that a filter allows in one publication; computed on first use.

    Attributes:
        units: booleans by number of the text unit, true if it is allowed; None: all are.
        types: types of allowed entities; None: all.
        relationship_types: types that a mention of an allowed relationship has; None: all.
        missing: a line for each missing name of the filter.
    """

    reader: Reader | None = None
    units: np.ndarray | None = None
    types: Sequence[str] | None = None
    relationship_types: Sequence[str] | None = None
    missing: Sequence[str] = ()
    _packed: dict[str, bytes] = field(default_factory=dict, init=False, repr=False)

    @property
    def is_everything(self) -> bool:
        return self.units is None and self.types is None and self.relationship_types is None

    @property
    def limits_text(self) -> bool:
        """Whether text units are excluded, so that descriptions and numbers must be derived from the others."""
        return self.units is not None

    def allows(self, kind: str, column: str) -> str:
        """SQL that is true for the rows whose `column`, a number of `kind`, is in the scope.

        Args:
            kind: text_unit, entity, relationship or community_report; entity_text and relationship_text: those whose
                published texts have allowed sources only.
        """
        return "true" if self.allowed(kind) is None else f"get_bit(${kind}_bits::BLOB::BIT, {column}::INT) = 1"

    def parameters(self, *kinds: str) -> dict[str, bytes]:
        """The parameters that `allows` needs for these kinds."""
        return {f"{kind}_bits": self._bits(kind) for kind in kinds if self.allowed(kind) is not None}

    def allowed_text_units(self, numbers: Iterable[int]) -> set[int]:
        """Those of the text units with these numbers that are in the scope."""
        return {number for number in numbers if self.units is None or self.units[number]}

    def shows(self, kind: str) -> bool:
        """Whether a row of `kind` is in the scope."""
        allowed = self.allowed(kind)
        return allowed is None or bool(allowed.any())

    def hides(self, kind: str) -> bool:
        """Whether a row of `kind` is not in the scope."""
        allowed = self.allowed(kind)
        return allowed is not None and self._reader.numbers(f"SELECT count(*) FROM {_TABLES[kind]}", {}) != [
            int(allowed.sum())
        ]

    def is_whole(self, kind: str, number: int) -> bool:
        """Whether all sources of the entity or relationship of this number are allowed."""
        whole = self.allowed(f"{kind}_text")
        return whole is None or bool(whole[number])

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of distinct neighbors in the scope, by number of the entity."""
        return self._by_number(
            "entity",
            f"SELECT entity AS number, count(DISTINCT neighbor) AS value FROM search.edges "
            f"WHERE {self.allows('relationship', 'relationship')} AND entity <> neighbor GROUP BY entity",
            np.int64,
            "relationship",
        )

    @cached_property
    def weights(self) -> np.ndarray:
        """Sum of the strengths of the mentions in the scope, by number of the relationship.

        Without the correction for chance co-occurrence, which would count text outside the scope. In an index without
        mentions (an imported one): the published weight if all sources are in the scope, else the number of text units.
        """
        return self._by_number(
            "relationship",
            f"""
            WITH units AS (
                SELECT relationship AS number, count(*) AS n FROM search.relationship_text_units
                WHERE {self.allows("text_unit", "text_unit")} GROUP BY relationship
            ), stated AS (
                SELECT relationship_number AS number, sum(strength) AS strength FROM relationship_mentions
                WHERE {self.allows("text_unit", "text_unit_number")} GROUP BY relationship_number
            )
            SELECT u.number, coalesce(s.strength,
                   CASE WHEN {self.allows("relationship_text", "u.number")} THEN r.weight ELSE u.n END) AS value
            FROM units u LEFT JOIN stated s USING (number) JOIN relationships r ON r.human_readable_id = u.number
            """,
            np.float64,
            "text_unit",
            "relationship_text",
        )

    def allowed(self, kind: str) -> np.ndarray | None:
        """The rows of `kind` (see `allows`) in the scope, booleans by number; None: all are."""
        if self.is_everything:
            return None
        match kind:
            case "text_unit":
                return self.units
            case "entity":
                return self._entities
            case "relationship":
                return self._relationships
            case "entity_text":
                return self._entities if self._whole_entities is None else self._whole_entities & self._entities
            case "relationship_text":
                return self._whole_relationships
            case "community_report":
                return self._reports
        raise KeyError(kind)

    def _bits(self, kind: str) -> bytes:
        """The rows of a kind as bits; packed once, because that takes a pass over all rows."""
        if kind not in self._packed:
            self._packed[kind] = _pack(self.allowed(kind))
        return self._packed[kind]

    @cached_property
    def _whole_entities(self) -> np.ndarray | None:
        return self._whole("search.entity_text_units", "entity")

    @cached_property
    def _whole_relationships(self) -> np.ndarray | None:
        return self._whole("search.relationship_text_units", "relationship")

    def _whole(self, table: str, kind: str) -> np.ndarray | None:
        """The rows of `kind` without any text unit outside the scope."""
        if self.units is None:
            return None
        outside = f"SELECT DISTINCT {kind} FROM {table} WHERE NOT {self.allows('text_unit', 'text_unit')}"
        return ~self._found(kind, outside, "text_unit")

    @cached_property
    def _entities(self) -> np.ndarray | None:
        if self.units is None:
            return self._of_type if self.types is not None else None
        query = f"SELECT DISTINCT entity FROM search.entity_text_units WHERE {self.allows('text_unit', 'text_unit')}"
        named = self._found("entity", query, "text_unit")
        return named & self._of_type if self.types is not None else named

    @cached_property
    def _of_type(self) -> np.ndarray:
        """The entities that have one of the types according to the text units in the scope."""
        query = "SELECT human_readable_id FROM entities WHERE type IN (SELECT unnest($types::VARCHAR[]))"
        published, whole = self._found("entity", query, types=self.types), self._whole_entities
        if whole is None:
            return published
        mentioned = self._found(
            "entity",
            f"""
            SELECT entity_number FROM (
                SELECT entity_number, type, count(*) AS n FROM entity_mentions
                WHERE {self.allows("text_unit", "text_unit_number")} AND entity_number IS NOT NULL GROUP BY ALL
            )
            QUALIFY row_number() OVER (
                PARTITION BY entity_number ORDER BY type IN ('', 'UNKNOWN', 'CONCEPT', 'NAME'), n DESC, type
            ) = 1 AND type IN (SELECT unnest($types::VARCHAR[]))
            """,
            "text_unit",
            types=self.types,
        )
        return np.where(whole, published, mentioned)

    @cached_property
    def _relationships(self) -> np.ndarray:
        """The relationships of an allowed type with both ends in the scope, and stated in a text unit of it."""
        both = f"{self.allows('entity', 'source_number')} AND {self.allows('entity', 'target_number')}"
        query = f"SELECT human_readable_id FROM relationships WHERE {both}"
        allowed = self._found("relationship", query, "entity")
        if self.units is not None:
            in_scope = self.allows("text_unit", "text_unit")
            query = f"SELECT DISTINCT relationship FROM search.relationship_text_units WHERE {in_scope}"
            allowed &= self._found("relationship", query, "text_unit")
        if self.relationship_types is not None:
            query = f"""
                SELECT DISTINCT relationship_number FROM relationship_mentions
                WHERE type IN (SELECT unnest($types::VARCHAR[])) AND relationship_number IS NOT NULL
                  AND {self.allows("text_unit", "text_unit_number")}
            """
            allowed &= self._found("relationship", query, "text_unit", types=self.relationship_types)
        return allowed

    @cached_property
    def _reports(self) -> np.ndarray | None:
        """The reports of communities whose members, inner relationships and claims have allowed sources only."""
        if self.units is None:
            return None
        return self._found(
            "community_report",
            f"""
            WITH touched AS (
                SELECT community FROM search.entity_communities
                WHERE get_bit($whole_entities::BLOB::BIT, entity::INT) = 0
                UNION
                SELECT a.community
                FROM search.edges e
                JOIN search.entity_communities a ON a.entity = e.entity
                JOIN search.entity_communities b
                  ON b.entity = e.neighbor AND b.level = a.level AND b.community = a.community
                WHERE get_bit($whole_relationships::BLOB::BIT, e.relationship::INT) = 0
                UNION
                SELECT m.community
                FROM covariates c JOIN search.entity_communities m ON m.entity IN (c.subject_number, c.object_number)
                WHERE NOT {self.allows("text_unit", "c.text_unit_number")}
            )
            SELECT human_readable_id FROM community_reports
            WHERE community IN (SELECT community FROM search.entity_communities) AND community NOT IN (FROM touched)
            """,
            "text_unit",
            whole_entities=_pack(self._whole_entities),
            whole_relationships=_pack(self._whole_relationships),
        )

    @property
    def _reader(self) -> Reader:
        assert self.reader is not None  # only EVERYTHING has none, and it runs no query
        return self.reader

    def _found(self, kind: str, query: str, *kinds: str, **given: Any) -> np.ndarray:
        """The rows of `kind` whose numbers a query returns, booleans by number; `kinds`: those of its scopes."""
        numbers = self._reader.frame(query, {**self.parameters(*kinds), **given}).to_series()
        found = np.zeros(size(self._reader, _TABLES[kind]), bool)
        found[numbers.to_numpy()] = True
        return found

    def _by_number(self, kind: str, query: str, dtype: Any, *kinds: str) -> np.ndarray:
        found = self._reader.frame(query, self.parameters(*kinds))
        values: np.ndarray = np.zeros(size(self._reader, _TABLES[kind]), dtype)
        values[found["number"].to_numpy()] = found["value"].to_numpy()
        return values


EVERYTHING = Scope()


def size(reader: Reader, table: str) -> int:
    """One more than the largest number of a table."""
    return int(reader.numbers(f"SELECT coalesce(max(human_readable_id), -1) + 1 FROM {table}", {})[0])


def _pack(allowed: np.ndarray | None) -> bytes:
    return b"" if allowed is None else np.packbits(allowed).tobytes()
