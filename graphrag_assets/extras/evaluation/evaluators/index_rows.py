"""What an index keeps for gold passages, counted per question: links to the graph, terms to search by, vectors.

The counts of two publications are compared for text units that both have: there each should be the same.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphrag_assets.extras.evaluation.questions import Placed
from graphrag_assets.store.publication_reader import Reader

_LINKS = """
SELECT text_unit AS number, count(*) AS n FROM (
    SELECT text_unit FROM search.entity_text_units UNION ALL SELECT text_unit FROM search.relationship_text_units
) WHERE text_unit IN (SELECT unnest($units::INT[])) GROUP BY ALL
"""
_TERMS = """
SELECT number, count(*) AS n FROM search.postings
WHERE kind = 'text_unit' AND number IN (SELECT unnest($units::INT[])) GROUP BY ALL
"""
_IDS = "SELECT human_readable_id, id FROM text_units WHERE human_readable_id IN (SELECT unnest($units::INT[]))"


class RowCounts(NamedTuple):
    """By metric the rows of each text unit by its id; and the ids by number."""

    counts: dict[str, dict[str, int]]
    ids: dict[int, str]


def row_counts(reader: Reader, placed: Sequence[Placed]) -> RowCounts:
    """The links and terms of the text units of gold passages."""
    units = sorted(frozenset().union(*(each.all_units for each in placed)))
    ids = dict(reader.frame(_IDS, {"units": units}).iter_rows())
    found: dict[str, dict[str, int]] = {}
    for metric, query in (("links", _LINKS), ("terms", _TERMS)):
        rows = dict(reader.frame(query, {"units": units}).iter_rows())
        found[metric] = {unit_id: rows.get(number, 0) for number, unit_id in ids.items()}
    return RowCounts(found, ids)


def kept_share(before: Mapping[str, int], after: Mapping[str, int], unit_ids: Sequence[str]) -> float | None:
    """The share of the rows of text units that are still there; None if no text unit with rows is in both."""
    shares = [min(after[unit] / before[unit], 1) for unit in unit_ids if unit in after and before.get(unit)]
    return sum(shares) / len(shares) if shares else None
