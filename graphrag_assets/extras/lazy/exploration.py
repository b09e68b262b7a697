"""Which text units a lazy search tests for relevance, and in what order, within a budget of tests.

After "LazyGraphRAG: Setting a new standard for quality and cost" (Edge et al., Microsoft Research 2024): best first by
the ranking of text units, then breadth first over communities, and deeper where several in a row hold nothing. In
contrast to it, communities with relevant units come first, those without can be reached again at deeper levels, and a
part of the budget is for the neighbors of relevant units.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader

NEIGHBORS_SHARE = 0.1
"""Of the budget: kept for the neighbors of relevant text units."""
MAX_LEVELS = 4
"""Communities deeper than this hold few text units each: the ranking finds those as well."""
_CONCURRENT_SHARE = 0.1  # of the budget: batches of the ranking that are tested at the same time, at least one
_RANKS_PER_COMMUNITY = 5

Sentences = tuple[int, ...]
"""The relevant sentences of a text unit, from 1; none: it is not relevant."""
Verdicts = dict[int, Sentences | None]
"""The relevant sentences of text units; None where the test failed."""


@dataclass(frozen=True, slots=True)
class Tested:
    """One relevance test, in the order of tests; `sentences` is None if it failed.

    `community` and `level`: those that led to the text unit; None if the ranking or a neighbor did.
    """

    unit: int
    community: int | None
    level: int | None
    sentences: Sentences | None


@dataclass
class Exploration:
    """The tests of an exploration, and how it goes on.

    Args:
        budget: maximum number of tests.
        batch: text units of one request.
        deeper_after: so many communities in a row without a relevant unit, and the next level is explored.
        test: gives the verdicts on batches of text units, which are tested at the same time.
        communities: gives the communities of a level, best first, each with its untested text units, best first.
    """

    budget: int
    batch: int
    deeper_after: int
    test: Callable[[list[list[int]]], Awaitable[Verdicts]]
    communities: Callable[["Exploration", int], Awaitable[dict[int, list[int]]]]
    tests: dict[int, Tested] = field(default_factory=dict)
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
        self, ranking: Sequence[int], levels: int, neighbors: Callable[[list[int]], Awaitable[list[int]]] | None
    ) -> None:
        """Test until the budget is spent, or nothing more is found.

        Args:
            ranking: text units, best first.
            levels: number of levels of communities.
            neighbors: gives the neighbors of text units; a part of the budget is for them.
        """
        self.reserve = max(int(self.budget * NEIGHBORS_SHARE), 1) if neighbors and self.budget > 1 else 0
        await self._best_first(ranking)
        await self._by_community(levels)
        is_over = self.room > 0
        if neighbors and self.reserve and self.hits:
            near = [unit for unit in await neighbors(self.hits) if unit not in self.tests]
            await self._test(dict.fromkeys(near[: self.reserve]))
        self.reserve = 0
        if not is_over:
            await self._by_community(levels)

    async def _test(self, units: Mapping[int, int | None], level: int | None = None) -> Verdicts:
        """Test text units, given with the community that led to each, and record the verdicts."""
        verdicts = await self.test(in_batches(list(units), self.batch)) if units else {}
        for unit, community in units.items():
            self.tests[unit] = Tested(unit, community, level, verdicts.get(unit))
        return verdicts

    async def _best_first(self, ranking: Sequence[int]) -> None:
        """Test the ranking, more batches at the same time as long as each of them holds something."""
        width, widest = 1, max(int(self.budget * _CONCURRENT_SHARE / self.batch), 1)
        while self.room > 0:
            untested = [unit for unit in ranking if unit not in self.tests]
            units = untested[: min(width * self.batch, self.room)]
            verdicts = await self._test(dict.fromkeys(units))
            if not units or not all(any(map(verdicts.get, batch)) for batch in in_batches(units, self.batch)):
                return
            width = min(2 * width, widest)

    async def _by_community(self, levels: int) -> None:
        """Explore all levels, and again as long as that finds something."""
        n_hits = -1
        while self.room > 0 and len(self.hits) > n_hits:
            n_hits = len(self.hits)
            for level in range(min(levels, MAX_LEVELS)):
                await self._explore_level(level)

    async def _explore_level(self, level: int) -> None:
        """Test half a batch of each of the first communities at a time, so that none uses up the budget."""
        if self.room <= 0:
            return
        untested = await self.communities(self, level)
        n_empty, share = 0, max(self.batch // 2, 1)
        while untested and n_empty < self.deeper_after and self.room > 0:
            first = list(untested)[: self.deeper_after]
            pairs = [(unit, community) for community in first for unit in untested[community][:share]]
            units = dict(pairs[: self.room])
            verdicts = await self._test(units, level)
            for community in dict.fromkeys(units.values()):
                is_relevant = any(verdicts.get(unit) for unit in units if units[unit] == community)
                n_empty = 0 if is_relevant else n_empty + 1
                untested[community] = untested[community][share:]
                if not is_relevant or not untested[community]:
                    del untested[community]


def in_batches(units: Sequence[int], size: int) -> list[list[int]]:
    """Return the units in batches of `size`, the last one shorter."""
    return [list(units[start : start + size]) for start in range(0, len(units), size)]


def n_levels(reader: Reader) -> int:
    """Return the number of levels of communities."""
    return int(reader.rows("SELECT coalesce(max(level) + 1, 0) FROM communities").item())


def communities_of_level(
    reader: Reader, level: int, ranking: Sequence[int], exploration: Exploration, scope: Scope = EVERYTHING
) -> dict[int, list[int]]:
    """Return the communities of a level, best first, each with its untested text units, best first.

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
            WHERE level = $level AND {scope.allows("text_unit", "t.text_unit")}
        ), placed AS (
            SELECT *, row_number() OVER (PARTITION BY community ORDER BY rank, text_unit) AS place FROM members
        ), communities AS (
            SELECT community, count_if(hit) AS hits, avg(rank) FILTER (place <= {_RANKS_PER_COMMUNITY}) AS mean
            FROM placed GROUP BY community
        ), best AS (
            SELECT community, hits, mean, text_unit, rank FROM members JOIN communities USING (community)
            QUALIFY row_number() OVER (PARTITION BY text_unit ORDER BY hits DESC, mean, community) = 1
        ), untested AS (
            SELECT *, row_number() OVER (PARTITION BY community ORDER BY rank, text_unit) AS place,
                   dense_rank() OVER (ORDER BY hits DESC, mean, community) AS of_community
            FROM best WHERE NOT list_contains($tested::INT[], text_unit)
        )
        SELECT community, text_unit FROM untested
        WHERE place <= $limit AND of_community <= $limit ORDER BY of_community, place
        """,
        {
            "units": list(ranking),
            "ranks": list(range(len(ranking))),
            "unranked": len(ranking),
            "hits": exploration.hits,
            "tested": list(exploration.tests),
            "level": level,
            "limit": exploration.room,
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


def tests_frame(reader: Reader, tests: Collection[Tested]) -> pl.DataFrame:
    """The tests in their order: order, human_readable_id, id, community, level, relevant (null: failed), sentences."""
    relevant = [None if one.sentences is None else bool(one.sentences) for one in tests]
    frame = pl.DataFrame(
        {
            "human_readable_id": pl.Series([one.unit for one in tests], dtype=pl.Int64),
            "community": pl.Series([one.community for one in tests], dtype=pl.Int64),
            "level": pl.Series([one.level for one in tests], dtype=pl.Int64),
            "relevant": pl.Series(relevant, dtype=pl.Boolean),
            "sentences": pl.Series([list(one.sentences or ()) for one in tests], dtype=pl.List(pl.Int64)),
        }
    ).with_columns(order=pl.int_range(1, pl.len() + 1, dtype=pl.Int64))
    ids = reader.rows(
        "SELECT human_readable_id, id FROM text_units WHERE human_readable_id IN (SELECT unnest($units::INT[]))",
        {"units": frame["human_readable_id"].to_list()},
    )
    return frame.join(ids, on="human_readable_id", how="left", maintain_order="left").select(
        "order", "human_readable_id", "id", "community", "level", "relevant", "sentences"
    )
