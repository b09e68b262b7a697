"""Sections within one budget."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.query.context import Layout, Section, fill, fill_sections
from graphrag_assets.text import tokenizer

ROW = Layout("Rows", {"id": "human_readable_id", "text": "text"}, title="text", text="text", short="short")
SHARES = (0.15, 0.35, 0.5)
LENGTHS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20)), max_size=8)


def rows(lengths: list[tuple[int, int]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "human_readable_id": range(len(lengths)),
            "text": ["word " * full for full, _ in lengths],
            "short": ["brief " * short for _, short in lengths],
        },
        schema={"human_readable_id": pl.Int64, "text": pl.String, "short": pl.String},
    )


def sections(frames: list[pl.DataFrame], budget: int) -> tuple[Section, ...]:
    return fill_sections([(ROW, frame, share) for frame, share in zip(frames, SHARES, strict=True)], budget)


def used(found: tuple[Section, ...]) -> int:
    return sum(section.tokens for section in found)


@given(st.tuples(LENGTHS, LENGTHS, LENGTHS), st.integers(0, 1500), st.integers(0, 400))
def test_a_budget_is_never_exceeded_and_a_larger_one_never_holds_less(
    lengths: tuple[list[tuple[int, int]], ...], budget: int, more: int
) -> None:
    frames = [rows(each) for each in lengths]
    small, large = sections(frames, budget), sections(frames, budget + more)
    for found, limit in ((small, budget), (large, budget + more)):
        text = "\n".join(section.text for section in found if section.text)
        assert len(tokenizer().encode_ordinary(text)) <= used(found) <= limit
    assert used(small) <= used(large)


@given(st.tuples(LENGTHS, LENGTHS, LENGTHS), st.integers(0, 1500))
def test_a_row_is_left_out_only_if_it_does_not_fit_what_is_left(
    lengths: tuple[list[tuple[int, int]], ...], budget: int
) -> None:
    found = sections([rows(each) for each in lengths], budget)
    left = budget - used(found)
    for section in found:
        absent = section.frame.filter(~pl.col("in_context"))
        for row in range(absent.height):
            alone = fill(ROW, absent[row : row + 1], 10_000).tokens
            heading = len(tokenizer().encode_ordinary("-----Rows-----\nid|text\n")) + 1
            assert alone - (heading if section.text else 0) > left


def test_a_section_keeps_to_its_share_while_the_others_need_theirs() -> None:
    plenty = rows([(8, 8)] * 60)
    found = sections([plenty, plenty, plenty], 1000)
    for section, share in zip(found, SHARES, strict=True):
        assert abs(section.tokens - 1000 * share) < 30


def test_an_unused_share_goes_to_the_others() -> None:
    plenty, nothing = rows([(8, 8)] * 200), rows([])
    assert used(sections([nothing, nothing, plenty], 1000)) > 980
    assert used(sections([plenty, nothing, nothing], 1000)) > 980


def test_a_row_that_does_not_fit_in_full_is_shown_in_short() -> None:
    section = fill(ROW, rows([(100, 3), (4, 4)]), 40)
    assert section.text == "-----Rows-----\nid|text\n0|brief brief brief\n1|word word word word\n"
    assert [passage.text.strip() for passage in section.passages] == ["brief brief brief", "word word word word"]
    assert section.frame["in_context"].to_list() == [True, True]
