"""Dynamic community selection: the descent through rated communities."""

import polars as pl
import pytest

from graphrag_assets.query.global_search import Descent, DynamicOptions

#        0        1     level 0
#      2   3            level 1; 3 has no report
#     4   5 6           level 2
TREE = pl.DataFrame(
    {
        "community": [0, 1, 2, 3, 4, 5, 6],
        "parent": [-1, -1, 0, 0, 2, 3, 3],
        "level": [0, 0, 1, 1, 2, 2, 2],
        "children": [[2, 3], [], [4], [5, 6], [], [], []],
        "report": [10, 11, 12, None, 14, 15, 16],
    }
)


def descent(ratings: dict[int, float], **options: object) -> tuple[set[int], list[list[int]]]:
    """The communities chosen, and those rated in each round."""
    way, rounds = Descent(TREE, DynamicOptions(**options)), []
    while way.due:
        rounds.append(way.due)
        way.add({community: ratings.get(community, 0.0) for community in way.due})
    return way.chosen, rounds


def test_search_descends_below_relevant_communities_only() -> None:
    # 3 has no report: 5 and 6 are rated in its place.
    assert descent({0: 3, 2: 3, 6: 2}) == ({2, 6}, [[0, 1], [2, 5, 6], [4]])
    assert descent({1: 5}) == ({1}, [[0, 1]])


def test_a_parent_gives_way_to_its_child_unless_kept() -> None:
    assert descent({0: 3, 2: 3, 4: 3})[0] == {4}
    assert descent({0: 3, 2: 3, 4: 3}, keep_parent=True)[0] == {0, 2, 4}


def test_the_threshold_decides() -> None:
    assert descent({0: 2, 1: 3}, threshold=3)[0] == {1}
    assert descent({0: 2, 1: 3}, threshold=2)[0] == {0, 1}


def test_next_level_is_rated_whole_if_no_report_is_relevant() -> None:
    assert descent({4: 5}) == ({4}, [[0, 1], [2, 5, 6], [4]])
    assert descent({}) == (set(), [[0, 1], [2, 5, 6], [4]])


@pytest.mark.parametrize(("level", "rated"), [(0, {0, 1}), (1, {0, 1, 2})])
def test_no_community_below_the_maximal_level_is_rated(level: int, rated: set[int]) -> None:
    _, rounds = descent(dict.fromkeys(range(7), 5.0), max_level=level)
    assert {community for due in rounds for community in due} == rated
