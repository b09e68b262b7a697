"""Which community keeps its id."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.community_identity import match_communities

Row = tuple[str, int, str]  # name, level, entities as the letters of a word


def previous_of(*rows: Row) -> pl.DataFrame:
    return pl.DataFrame(
        [(name, level, sorted(letters)) for name, level, letters in rows],
        schema={"id": pl.String, "level": pl.Int64, "entity_ids": pl.List(pl.String)},
        orient="row",
    )


def current_of(*rows: Row) -> pl.DataFrame:
    return previous_of(*rows).rename({"id": "key"})


def ids_after(previous: pl.DataFrame, current: pl.DataFrame) -> dict[str, str]:
    return dict(match_communities(previous, current).iter_rows())


def test_half_in_common_is_enough_and_less_is_not() -> None:
    assert ids_after(previous_of(("p", 0, "abc")), current_of(("k", 0, "abd"))) == {"k": "p"}  # 2 of 4
    previous, current = previous_of(("p", 0, "abcd")), current_of(("k", 0, "abef"))  # 2 of 6
    assert ids_after(previous, current) == {"k": "k"}


def test_of_two_heirs_the_one_with_the_larger_overlap_inherits() -> None:
    previous = previous_of(("p", 0, "abcdefghij"))
    current = current_of(("k1", 0, "abcdefg"), ("k2", 0, "hij"))
    assert ids_after(previous, current) == {"k1": "p", "k2": "k2"}


def test_a_community_that_moved_to_another_level_is_still_itself() -> None:
    previous = previous_of(("p", 0, "abcdefgh"), ("q", 1, "abcde"), ("r", 1, "fgh"))
    current = current_of(("k1", 0, "abcde"), ("k2", 0, "fgh"))
    assert ids_after(previous, current) == {"k1": "q", "k2": "r"}


def test_a_new_community_never_takes_an_id_that_was_given_before() -> None:
    # p grew out of its old shape; the old shape comes back as another community, whose key is p's id.
    previous = previous_of(("p", 0, "abcdefgh"))
    current = current_of(("k", 0, "abcdefg"), ("p", 0, "xyz"))
    assert ids_after(previous, current) == {"k": "p", "p": stable_id("community", "p", 1)}


@st.composite
def partitions(draw: st.DrawFn) -> list[Row]:
    """Two levels over some of the letters, the second refining the first."""
    letters = draw(st.lists(st.sampled_from("abcdefghijklmnop"), unique=True, min_size=1))
    coarse = [draw(st.integers(0, 3)) for _ in letters]
    fine = [draw(st.integers(0, 1)) for _ in letters]
    rows: dict[tuple[int, object], str] = {}
    for letter, top, below in zip(letters, coarse, fine, strict=True):
        for place in ((0, top), (1, (top, below))):
            rows[place] = rows.get(place, "") + letter
    return [(stable_id(level, *sorted(word))[:6], level, word) for (level, _), word in rows.items()]


@given(partitions(), partitions(), st.floats(0.01, 1.0))
def test_no_two_communities_share_an_id(before: list[Row], after: list[Row], threshold: float) -> None:
    previous, current = previous_of(*before), current_of(*after)
    ids = match_communities(previous, current, threshold)
    assert ids["key"].to_list() == sorted(current["key"])
    assert ids["id"].is_unique().all()
    sizes = {name: set(letters) for name, _, letters in before}
    for (key, id_), letters in ((row, next(w for k, _, w in after if k == row[0])) for row in ids.iter_rows()):
        if id_ in sizes:
            union = sizes[id_] | set(letters)
            assert len(sizes[id_] & set(letters)) / len(union) >= threshold
        else:
            assert id_ == key or key in sizes


@given(partitions())
def test_the_same_communities_again_change_nothing(rows: list[Row]) -> None:
    current = current_of(*rows)
    first = match_communities(previous_of(), current)
    named = current.join(first, on="key").select("id", "level", "entity_ids")
    second = match_communities(named, current)
    assert_frame_equal(second, first)
