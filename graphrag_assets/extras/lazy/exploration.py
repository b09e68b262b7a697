"""Which text units a lazy search tests for relevance, and in what order, within a budget of tests.

After "LazyGraphRAG: Setting a new standard for quality and cost" (Edge et al., Microsoft Research 2024): best first by
the ranking of text units, then breadth first over communities, and deeper where several in a row hold nothing. In
contrast to it, communities with relevant units come first, those without can be reached again at deeper levels, and a
part of the budget is for the neighbors of relevant units.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader

NEIGHBORS_SHARE = 0.1
"""Of the budget: kept for the neighbors of relevant text units."""
MAX_LEVELS = 4
"""Communities deeper than this hold few text units each: the ranking finds those as well."""
_CONCURRENT_SHARE = 0.1  # of the budget: batches of the ranking that are tested at the same time, at least one
_RANKS_PER_COMMUNITY = 5

Sentences = tuple[int, ...]
"""The relevant sentences of a text unit, from 1; none: it is not relevant."""


@dataclass(frozen=True, slots=True)
class Tested:
    """One relevance test, in the order of tests; `sentences` is None if it failed.

    `community` and `level`: those that led to the text unit; None if the ranking or a neighbor did.
    """

    unit: int
    community: int | None
    level: int | None
    sentences: Sentences | None


def in_batches(units: Sequence[int], size: int) -> list[list[int]]:
    """The units in batches of `size`, the last one shorter."""
    return [list(units[start : start + size]) for start in range(0, len(units), size)]


class Exploration:
    """The state of an exploration: `due` are the batches to test next, `record` takes their verdicts.

    When `level` is a number, `enter` has to be called with the communities of that level before `due`. After the last
    batch, `neighbors_left` says how many neighbors of relevant units may be tested; `record_neighbors` takes their
    verdicts, and the exploration goes on with what is left.

    Args:
        ranking: text units, best first.
        levels: number of levels of communities.
        budget: maximum number of tests.
        batch: text units of one request.
        deeper_after: so many communities in a row without a relevant unit, and the next level is explored.
        neighbors: whether a part of the budget is for neighbors.
    """

    def __init__(
        self, ranking: Sequence[int], levels: int, budget: int, batch: int, deeper_after: int, neighbors: bool
    ) -> None:
        self.tests: dict[int, Tested] = {}
        self.level: int | None = None
        self._ranking, self._levels = list(ranking), min(levels, MAX_LEVELS)
        self._budget, self._batch, self._deeper_after = budget, batch, deeper_after
        self._reserved = max(int(budget * NEIGHBORS_SHARE), 1) if neighbors and budget > 1 else 0
        self._width, self._widest = 1, max(int(budget * _CONCURRENT_SHARE / batch), 1)
        self._communities: dict[int, list[int]] | None = None
        self._current: int | None = None
        self._pending: dict[int, int | None] = {}  # units that are due, and the community that led to each
        self._empty = 0
        self._hits_before_pass = 0
        self._over = False

    @property
    def hits(self) -> list[int]:
        """The relevant text units, in the order in which they were found."""
        return [unit for unit, test in self.tests.items() if test.sentences]

    @property
    def neighbors_left(self) -> int:
        """Number of neighbors that may be tested at the end."""
        return min(self._reserved, self._budget - len(self.tests))

    @property
    def room(self) -> int:
        """Number of text units that may still be tested, without neighbors."""
        return self._budget - self._reserved - len(self.tests)

    def due(self) -> list[list[int]]:
        """The batches to test next; none if the exploration is over, or `level` is to be entered."""
        room = self.room
        if self._over or self.level is not None or room <= 0:
            return []
        if self._communities is None:
            untested = [unit for unit in self._ranking if unit not in self.tests]
            self._pending = dict.fromkeys(untested[: min(self._width * self._batch, room)])
            if not self._pending:
                self._descend(0)
        else:
            self._pending = self._of_communities(room)
        return in_batches(list(self._pending), self._batch)

    def _of_communities(self, room: int) -> dict[int, int | None]:
        """The next units of the first communities: half a batch of each, so that no community uses up the budget."""
        assert self._communities is not None
        share, chosen = max(self._batch // 2, 1), dict[int, int | None]()
        for community in list(self._communities)[: self._deeper_after]:
            untested = [unit for unit in self._communities[community] if unit not in self.tests and unit not in chosen]
            chosen |= dict.fromkeys(untested[:share], community)
        return dict(list(chosen.items())[:room])

    def enter(self, communities: Mapping[int, Sequence[int]]) -> None:
        """Explore these communities of the level, best first, each with its text units, best first."""
        self._current, self.level = self.level, None
        self._communities = {community: list(units) for community, units in communities.items()}
        self._close(())

    def record(self, verdicts: Mapping[int, Sentences | None]) -> None:
        """Continue with the verdicts on the units that were due."""
        for unit, community in self._pending.items():
            self.tests[unit] = Tested(unit, community, self._current, verdicts.get(unit))
        if self._communities is None:
            batches = in_batches(list(self._pending), self._batch)
            if all(any(verdicts.get(unit) for unit in batch) for batch in batches):
                self._width = min(2 * self._width, self._widest)
            else:
                self._descend(0)
            return
        found: dict[int, bool] = {}
        for unit, community in self._pending.items():
            assert community is not None
            found[community] = found.get(community, False) or bool(verdicts.get(unit))
        for relevant in found.values():
            self._empty = 0 if relevant else self._empty + 1
        self._close([community for community, relevant in found.items() if not relevant])

    def record_neighbors(self, verdicts: Mapping[int, Sentences | None]) -> None:
        """Add the verdicts on neighbors; what these leave of their part of the budget is for the exploration."""
        for unit, sentences in verdicts.items():
            self.tests[unit] = Tested(unit, None, None, sentences)
        self._reserved = 0

    def _close(self, communities: Iterable[int]) -> None:
        """Leave communities without a relevant unit, and those with no untested one; go on when none is left."""
        assert self._communities is not None
        assert self._current is not None
        closed = set(communities)
        self._communities = {
            community: units
            for community, units in self._communities.items()
            if community not in closed and any(unit not in self.tests for unit in units)
        }
        if not self._communities or self._empty >= self._deeper_after:
            self._descend(self._current + 1)

    def _descend(self, level: int) -> None:
        """Go to a level; after the last one to the first again, if anything was found since."""
        self._empty = 0
        n_hits = len(self.hits)
        if level == 0:
            self._hits_before_pass = n_hits
        if level < self._levels:
            self.level = level
        elif n_hits > self._hits_before_pass:
            self._descend(0)
        else:
            self._over = True


def n_levels(reader: Reader) -> int:
    """Number of levels of communities."""
    return int(reader.rows("SELECT coalesce(max(level) + 1, 0) FROM communities").item())


def communities_of_level(
    reader: Reader, level: int, ranking: Sequence[int], exploration: Exploration, scope: Scope = EVERYTHING
) -> dict[int, list[int]]:
    """The communities of a level, best first, each with its untested text units, best first.

    The best communities have most relevant units so far, then the best mean rank of their five best text units. A text
    unit counts in its best community alone.
    """
    found = reader.rows(
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
    return dict(found.group_by("community", maintain_order=True).agg("text_unit").iter_rows())


def neighbors_of(reader: Reader, units: Sequence[int], distance: int, scope: Scope = EVERYTHING) -> list[int]:
    """The text units up to `distance` before and after these in their documents; those of the first unit first."""
    found = reader.rows(
        f"""
        WITH given AS (SELECT unnest($units::INT[]) AS unit, unnest($places::INT[]) AS given_place),
        ordered AS (
            SELECT human_readable_id AS unit, document_id,
                   row_number() OVER (PARTITION BY document_id ORDER BY start_char, human_readable_id) AS place
            FROM text_units WHERE document_id IN (
                SELECT document_id FROM text_units WHERE human_readable_id IN (SELECT unit FROM given)
            )
        )
        SELECT n.unit FROM given JOIN ordered g USING (unit)
        JOIN ordered n ON n.document_id = g.document_id AND abs(n.place - g.place) BETWEEN 1 AND $distance
        WHERE {scope.allows("text_unit", "n.unit")}
        ORDER BY abs(n.place - g.place), given_place, n.unit
        """,
        {
            "units": list(units),
            "places": list(range(len(units))),
            "distance": distance,
        },
    )
    known = set(units)
    return [unit for unit in dict.fromkeys(found.to_series().to_list()) if unit not in known]


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
