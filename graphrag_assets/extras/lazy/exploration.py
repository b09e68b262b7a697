"""Which text units a lazy search tests for relevance, and in what order, within a budget of tests.

After "LazyGraphRAG: Setting a new standard for quality and cost" (Edge et al., Microsoft Research 2024): best first by
the ranking of text units, then breadth first over communities. In contrast to it, communities with relevant units come
first, and a part of the budget is for the neighbors of relevant units.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader

NEIGHBORS_SHARE = 0.1
"""Of the budget: kept for the neighbors of relevant text units."""
_CONCURRENT_SHARE = 0.1  # of the budget: batches of the ranking that are tested at the same time, at least one
_RANKS_PER_COMMUNITY = 5

Sentences = tuple[int, ...]
"""The relevant sentences of a text unit, from 1; none: it is not relevant."""
Verdicts = dict[int, Sentences | None]
"""The relevant sentences of text units; None where the test failed."""


@dataclass(frozen=True, slots=True)
class RelevanceTest:
    """One test, and the community that led to the text unit; None if the ranking or a neighbor did."""

    unit: int
    community: int | None
    sentences: Sentences | None


@dataclass
class Exploration:
    """The tests of an exploration, and how it goes on.

    Args:
        budget: maximum number of tests.
        batch: text units of one request.
        max_empty_communities: so many in a row without a relevant unit, and the exploration ends.
        test: gives the verdicts on batches of text units, which are tested at the same time.
        communities: gives communities, best first, each with its untested text units, best first.
    """

    budget: int
    batch: int
    max_empty_communities: int
    test: Callable[[list[list[int]]], Awaitable[Verdicts]]
    communities: Callable[["Exploration"], Awaitable[dict[int, list[int]]]]
    tests: dict[int, RelevanceTest] = field(default_factory=dict)
    reserve: int = 0
    """Tests that are kept for neighbors."""

    @property
    def hits(self) -> list[int]:
        """The relevant text units, in the order in which they were found."""
        return [unit for unit, test in self.tests.items() if test.sentences]

    @property
    def room(self) -> int:
        """Number of text units that may still be tested."""
        return self.budget - self.reserve - len(self.tests)

    async def run(
        self, ranking: Sequence[int], neighbors: Callable[[list[int]], Awaitable[list[int]]] | None = None
    ) -> None:
        """Test until the budget is spent, or nothing more is found.

        Args:
            ranking: text units, best first.
            neighbors: gives the neighbors of text units; a part of the budget is for them.
        """
        self.reserve = max(int(self.budget * NEIGHBORS_SHARE), 1) if neighbors and self.budget > 1 else 0
        await self._best_first(ranking)
        await self._by_community()
        reserve, self.reserve = self.reserve, 0
        if neighbors and self.hits:
            near = [unit for unit in await neighbors(self.hits) if unit not in self.tests]
            if any((await self._test(dict.fromkeys(near[:reserve]))).values()):
                await self._by_community()

    async def _test(self, units: Mapping[int, int | None]) -> Verdicts:
        """Test text units, given with the community that led to each, and record the verdicts."""
        verdicts = await self.test(in_batches(list(units), self.batch)) if units else {}
        for unit, community in units.items():
            self.tests[unit] = RelevanceTest(unit, community, verdicts.get(unit))
        return verdicts

    async def _best_first(self, ranking: Iterable[int]) -> None:
        """Test the ranking, more batches at the same time as long as each of them holds something."""
        width, widest = 1, max(int(self.budget * _CONCURRENT_SHARE / self.batch), 1)
        while self.room > 0:
            untested = [unit for unit in ranking if unit not in self.tests]
            units = untested[: min(width * self.batch, self.room)]
            verdicts = await self._test(dict.fromkeys(units))
            if not units or not all(any(map(verdicts.get, batch)) for batch in in_batches(units, self.batch)):
                return
            width = min(2 * width, widest)

    async def _by_community(self) -> None:
        """Test half a batch of each of the first communities at a time, and again as long as that finds something."""
        n_hits, share = -1, max(self.batch // 2, 1)
        while self.room > 0 and len(self.hits) > n_hits:
            n_hits, n_empty = len(self.hits), 0
            untested = await self.communities(self)
            while untested and n_empty < self.max_empty_communities and self.room > 0:
                first = list(untested)[: self.max_empty_communities]
                pairs = [(unit, community) for community in first for unit in untested[community][:share]]
                units = dict(pairs[: self.room])
                verdicts = await self._test(units)
                for community in dict.fromkeys(units.values()):
                    is_relevant = any(verdicts.get(unit) for unit in units if units[unit] == community)
                    n_empty = 0 if is_relevant else n_empty + 1
                    untested[community] = untested[community][share:]
                    if not is_relevant or not untested[community]:
                        del untested[community]


def in_batches(units: Sequence[int], size: int) -> list[list[int]]:
    """Return the units in batches of `size`, the last one shorter."""
    return [list(units[start : start + size]) for start in range(0, len(units), size)]


def communities_to_test(
    reader: Reader, ranking: Sequence[int], exploration: Exploration, scope: Scope = EVERYTHING
) -> dict[int, list[int]]:
    """Return the smallest communities, best first, each with its untested text units, best first.

    The best communities have most relevant units so far, then the best mean rank of their five best text units. A text
    unit counts in its best community alone.
    """
    rows = reader.rows(
        f"""
        WITH ranks AS (SELECT unnest($units::INT[]) AS text_unit, unnest($ranks::INT[]) AS rank),
        members AS (
            SELECT DISTINCT community, t.text_unit, coalesce(rank, $unranked) AS rank,
                   list_contains($hits::INT[], t.text_unit) AS hit
            FROM search.entity_communities JOIN search.entity_text_units t USING (entity)
            LEFT JOIN ranks USING (text_unit)
            WHERE level = (SELECT max(level) FROM search.entity_communities)
              AND {scope.allows("text_unit", "t.text_unit")}
        ), placed AS (
            SELECT *, row_number() OVER (PARTITION BY community ORDER BY rank, text_unit) AS place FROM members
        ), communities AS (
            SELECT community, count_if(hit) AS hits, avg(rank) FILTER (place <= {_RANKS_PER_COMMUNITY}) AS mean
            FROM placed GROUP BY community
        )
        SELECT community, text_unit FROM members JOIN communities USING (community)
        WHERE NOT list_contains($tested::INT[], text_unit)
        QUALIFY row_number() OVER (PARTITION BY text_unit ORDER BY hits DESC, mean, community) = 1
        ORDER BY hits DESC, mean, community, rank, text_unit
        """,
        {
            "units": list(ranking),
            "ranks": list(range(len(ranking))),
            "unranked": len(ranking),
            "hits": exploration.hits,
            "tested": list(exploration.tests),
        },
    )
    return dict(rows.group_by("community", maintain_order=True).agg("text_unit").iter_rows())


def neighbors_of(reader: Reader, units: Sequence[int], distance: int, scope: Scope = EVERYTHING) -> list[int]:
    """Return text units up to `distance` before and after these in their documents; those of the first unit first."""
    rows = reader.rows(
        f"""
        WITH hits AS (SELECT unnest($units::INT[]) AS unit, unnest($places::INT[]) AS hit_place),
        ordered AS (
            SELECT human_readable_id AS unit, document_id,
                   row_number() OVER (PARTITION BY document_id ORDER BY start_char, human_readable_id) AS place
            FROM text_units WHERE document_id IN (
                SELECT document_id FROM text_units WHERE human_readable_id IN (SELECT unit FROM hits)
            )
        )
        SELECT n.unit FROM hits JOIN ordered g USING (unit)
        JOIN ordered n ON n.document_id = g.document_id AND abs(n.place - g.place) BETWEEN 1 AND $distance
        WHERE {scope.allows("text_unit", "n.unit")}
        ORDER BY abs(n.place - g.place), hit_place, n.unit
        """,
        {
            "units": list(units),
            "places": list(range(len(units))),
            "distance": distance,
        },
    )
    return list(dict.fromkeys(rows.to_series().to_list()))


def tests_frame(reader: Reader, tests: Collection[RelevanceTest]) -> pl.DataFrame:
    """The tests in their order: order, human_readable_id, id, community, relevant (null: failed), sentences."""
    relevant = [None if one.sentences is None else bool(one.sentences) for one in tests]
    frame = pl.DataFrame(
        {
            "order": pl.Series(range(1, len(tests) + 1), dtype=pl.Int64),
            "human_readable_id": pl.Series([one.unit for one in tests], dtype=pl.Int64),
            "community": pl.Series([one.community for one in tests], dtype=pl.Int64),
            "relevant": pl.Series(relevant, dtype=pl.Boolean),
            "sentences": pl.Series([list(one.sentences or ()) for one in tests], dtype=pl.List(pl.Int64)),
        }
    )
    ids = reader.rows(
        "SELECT human_readable_id, id FROM text_units WHERE human_readable_id IN (SELECT unnest($units::INT[]))",
        {"units": frame["human_readable_id"].to_list()},
    )
    frame = frame.join(ids, on="human_readable_id", how="left", maintain_order="left")
    return frame.select("order", "human_readable_id", "id", "community", "relevant", "sentences")
