"""What an index keeps for gold passages: links to the graph and terms to search by.

The counts of two publications are compared for text units that both have: there each should be the same.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphrag_assets.extras.evaluation.questions import Placed
from graphrag_assets.store.publication_reader import Reader

_ROWS = {
    "links": "SELECT text_unit AS number FROM search.entity_text_units",
    "relationships": "SELECT text_unit AS number FROM search.relationship_text_units",
    "mentions": "SELECT text_unit_number AS number FROM entity_mentions WHERE entity_number IS NOT NULL",
    "terms": "SELECT number FROM search.postings WHERE kind = 'text_unit'",
}
"""By metric the query for its rows."""
_COUNTED = "SELECT number, count(*) FROM ({rows}) WHERE number IN (SELECT unnest($units::INT[])) GROUP BY ALL"
_IDS = "SELECT human_readable_id, id FROM text_units WHERE human_readable_id IN (SELECT unnest($units::INT[]))"


class RowCounts(NamedTuple):
    """By metric the rows of each text unit by its id; and the ids by number."""

    counts: dict[str, dict[str, int]]
    ids: dict[int, str]


def row_counts(reader: Reader, placed: Sequence[Placed]) -> RowCounts:
    """The rows of the text units of gold passages."""
    units = sorted(frozenset().union(*(each.all_units for each in placed)))
    ids = dict(reader.frame(_IDS, {"units": units}).iter_rows())
    found: dict[str, dict[str, int]] = {}
    for metric, query in _ROWS.items():
        rows = dict(reader.frame(_COUNTED.format(rows=query), {"units": units}).iter_rows())
        found[metric] = {unit_id: rows.get(number, 0) for number, unit_id in ids.items()}
    return RowCounts(found, ids)


def kept_share(before: Mapping[str, int], after: Mapping[str, int], unit_ids: Sequence[str]) -> float | None:
    """The share of the rows of text units that are still there; None if no text unit with rows is in both."""
    shares = [min(after[unit] / before[unit], 1) for unit in unit_ids if unit in after and before.get(unit)]
    return sum(shares) / len(shares) if shares else None
