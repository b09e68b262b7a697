"""Sections within one budget."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.query.context import Layout, Section, columns, fill, fill_sections
from graphrag_assets.query.local import CLAIMS, ENTITIES, RELATIONSHIPS, REPORTS, SOURCES
from graphrag_assets.text.words import tokenizer

ROW = Layout("Rows", {"id": "human_readable_id", "text": "text"}, title="text", text="text")
SHARES = (0.15, 0.35, 0.5)
LENGTHS = st.lists(st.integers(0, 200), max_size=8)


def rows(lengths: list[int]) -> pl.DataFrame:
    return pl.DataFrame(
        {"human_readable_id": range(len(lengths)), "text": ["word " * length for length in lengths]},
        schema={"human_readable_id": pl.Int64, "text": pl.String},
    )


def sections(frames: list[pl.DataFrame], budget: int) -> tuple[Section, ...]:
    groups = [(share, [(ROW, frame, 1.0)]) for frame, share in zip(frames, SHARES, strict=True)]
    return fill_sections(groups, budget, ["Rows"])


def used(found: tuple[Section, ...]) -> int:
    return sum(section.tokens for section in found)


@given(st.tuples(LENGTHS, LENGTHS, LENGTHS), st.integers(0, 1500))
def test_a_budget_is_never_exceeded_and_every_section_has_what_fits_its_share(
    lengths: tuple[list[int], ...], budget: int
) -> None:
    frames = [rows(each) for each in lengths]
    found = sections(frames, budget)
    text = "\n".join(section.text for section in found if section.text)
    assert len(tokenizer().encode_ordinary(text)) <= used(found) <= budget
    for frame, section, share in zip(frames, found, SHARES, strict=True):
        alone = fill(ROW, frame, int(share * budget))
        if all(passage.text == frame["text"][passage.number] for passage in alone.passages):  # none was cut
            assert section.tokens >= alone.tokens


@given(st.tuples(LENGTHS, LENGTHS, LENGTHS), st.integers(0, 1500))
def test_a_row_is_left_out_only_if_it_does_not_fit_what_is_left(lengths: tuple[list[int], ...], budget: int) -> None:
    found = sections([rows(each) for each in lengths], budget)
    left = budget - used(found)
    for section in found:
        absent = section.frame.filter(~pl.col("in_context"))
        for row in range(absent.height):
            alone = fill(ROW, absent[row : row + 1], 10_000).tokens
            heading = len(tokenizer().encode_ordinary("-----Rows-----\nid|text\n")) + 1
            assert alone - (heading if section.text else 0) > left


def test_rows_that_fit_exactly_are_in_the_context() -> None:
    whole = fill(ROW, rows([5, 20, 3]), 1_000)
    assert fill(ROW, rows([5, 20, 3]), whole.tokens).text == whole.text


SENTENCES = "The first ship sailed in June. The second ship waited for the tide. The third ship sank off the coast."


def long_row(text: str) -> pl.DataFrame:
    return pl.DataFrame({"human_readable_id": [7], "text": [text]})


def test_single_row_that_is_too_long_is_cut_at_a_sentence() -> None:
    section = fill(ROW, long_row(SENTENCES), 30)
    assert section.text == (
        "-----Rows-----\nid|text\n7|The first ship sailed in June. The second ship waited for the tide.\n"
    )
    assert section.tokens <= 30
    assert [passage.text for passage in section.passages] == [SENTENCES[: SENTENCES.index(" The third")]]
    assert section.frame["in_context"].to_list() == [True]


def test_row_cut_to_its_share_is_shown_in_full_when_others_leave_enough() -> None:
    (section, _) = fill_sections(
        [(0.5, [(ROW, long_row(SENTENCES), 1.0)]), (0.5, [(ROW, rows([]), 1.0)])], 60, ["Rows"]
    )
    assert SENTENCES in section.text


def test_sections_of_a_group_share_what_those_before_them_leave() -> None:
    plenty, few = rows([8] * 60), rows([8] * 3)
    groups = [(0.4, [(ROW, few, 0.5), (ROW, plenty, 0.75), (ROW, plenty, 1.0)]), (0.6, [(ROW, plenty, 1.0)])]
    first, second, third, other = fill_sections(groups, 1000, ["Rows"])
    assert first.frame["in_context"].all()
    assert abs(second.tokens - 0.75 * (400 - first.tokens)) < 15
    assert abs(third.tokens - (400 - first.tokens - second.tokens)) < 15
    assert abs(other.tokens - 600) < 15


@pytest.mark.parametrize("layout", [REPORTS, ENTITIES, RELATIONSHIPS, CLAIMS, SOURCES])
@pytest.mark.parametrize("more", ["", "document_date", "hop"])
def test_headings_are_counted_as_the_tokenizer_counts_them(layout: Layout, more: str) -> None:
    layout = replace(layout, by_heading={**layout.by_heading, **columns(more)})
    assert layout.heading_tokens == len(tokenizer().encode_ordinary(layout.heading)) + 1  # the empty line
