"""Dynamic community selection: rates reports from the top down; global search reads the relevant ones.

After "GraphRAG: Improving global search via dynamic community selection" (Microsoft Research 2024): the communities
below an irrelevant report are not rated.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import field

import polars as pl
from pydantic.dataclasses import dataclass

from graphrag_assets.query.option_types import Count, Flag, Number, Options


@dataclass(frozen=True, kw_only=True)
class DynamicOptions(Options):
    """How communities are selected.

    Args:
        threshold: minimum rating, 0 to 5, from which a report is read and the communities below it are rated.
        keep_parent: read a report even if one below it is read.
        max_level: communities below this level are not rated.
        use_summary: rate reports by their summaries, which costs less.
    """

    threshold: Number = 1.0
    keep_parent: Flag = False
    max_level: Count = 2
    use_summary: Flag = False


@dataclasses.dataclass
class Descent:
    """The way down the hierarchy: `due` are the communities to rate next, `chosen` those whose reports are read.

    Instead of a community without a report, those below it are rated. If no report of a level is relevant, the whole
    next level is rated: a report may leave out what a report below it says.
    """

    tree: pl.DataFrame
    options: DynamicOptions
    due: list[int] = field(default_factory=list)
    chosen: set[int] = field(default_factory=set)
    ratings: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.tree.select("community", "parent", "level", "children", "report").rows()
        self._parent = {community: parent for community, parent, *_ in rows}
        self._level = {community: level for community, _, level, *_ in rows}
        self._children = {community: children or [] for community, _, _, children, _ in rows}
        self.report = {community: report for community, *_, report in rows if report is not None}
        self.due = self._with_reports(c for c, level in sorted(self._level.items()) if level == 0)

    def rated(self, ratings: dict[int, float]) -> None:
        """Continue with the ratings of all communities that were due."""
        self.ratings |= ratings
        relevant = [c for c in self.due if ratings.get(c, 0.0) >= self.options.threshold]
        for community in relevant:
            self.chosen.add(community)
            if not self.options.keep_parent:
                self.chosen -= set(self._above(community))
        due = self._unrated(child for c in relevant for child in self._children.get(c, []))
        level = min((self._level[c] for c in self.due), default=self.options.max_level)
        while not due and not self.chosen and level < self.options.max_level:
            level += 1
            due = self._unrated(c for c, at in sorted(self._level.items()) if at == level)
        self.due = due

    def _unrated(self, communities: Iterable[int]) -> list[int]:
        return [c for c in self._with_reports(communities) if c not in self.ratings]

    def _with_reports(self, communities: Iterable[int]) -> list[int]:
        """These communities down to the maximum level; instead of one without a report, those below it."""
        found: dict[int, None] = {}
        waiting = list(communities)
        while waiting:
            community = waiting.pop(0)
            if self._level.get(community, self.options.max_level + 1) > self.options.max_level:
                continue
            if community in self.report:
                found[community] = None
            else:
                waiting = [*self._children.get(community, []), *waiting]
        return list(found)

    def _above(self, community: int) -> Iterable[int]:
        parent = self._parent.get(community, -1)
        while parent is not None and parent in self._parent:
            yield parent
            parent = self._parent[parent]
