"""Contexts of text units: headings of Markdown, and which of them are in force where a unit begins."""

from datetime import date

import polars as pl

from graphrag_assets.pipeline.unit_contexts import (
    Outline,
    heading_contexts,
    headings,
    joined,
    outlines_of,
    place_line,
)

NESTED = """# The cable

Preface.

## First attempt

### 1857

The cable broke.

### 1858

The cable worked for three weeks.

## Success

The Great Eastern sailed.
"""


def path_at(text: str, passage: str) -> list[str]:
    return Outline(text).path(text.index(passage))


def test_passage_has_the_headings_in_force_where_it_begins():
    assert path_at(NESTED, "Preface") == ["The cable"]
    assert path_at(NESTED, "The cable broke") == ["The cable", "First attempt", "1857"]
    assert path_at(NESTED, "The cable worked") == ["The cable", "First attempt", "1858"]
    assert path_at(NESTED, "The Great Eastern") == ["The cable", "Success"]


def test_passage_that_begins_with_a_heading_has_its_parents():
    assert path_at(NESTED, "# The cable") == []
    assert path_at(NESTED, "### 1858") == ["The cable", "First attempt"]
    assert path_at(NESTED, "## Success") == ["The cable"]


def test_heading_closes_all_headings_of_its_level_or_deeper():
    text = "# A\n\n### C\n\nin c\n\n## B\n\nin b\n\n#### D\n\nin d\n\n### E\n\nin e\n\n# F\n\nin f\n"
    assert path_at(text, "in c") == ["A", "C"]
    assert path_at(text, "in b") == ["A", "B"]
    assert path_at(text, "in d") == ["A", "B", "D"]
    assert path_at(text, "in e") == ["A", "B", "E"]
    assert path_at(text, "in f") == ["F"]


def test_marks_in_fenced_code_are_no_headings():
    text = "# Guide\n\n```python\n# a comment\n~~~\n```\n\n## Next\n\n~~~~\n# another\n~~~\n# still code\n~~~~\n\n### Last\n"
    assert [heading.title for heading in headings(text)] == ["Guide", "Next", "Last"]


def test_text_that_only_resembles_a_heading_is_not_one():
    text = "#hashtag\n\n####### seven\n\n    # indented code\n\nNo. # 5 of them\n\n#\n\n# \n"
    assert headings(text) == []


def test_title_that_repeats_the_first_heading_appears_once():
    assert joined("The Cable", ["The cable", "1866"]) == "The Cable › 1866"
    assert joined("The **Cable**", ["The Cable"]) == "The **Cable**"
    assert joined("cable.md", ["The cable", "1866"]) == "cable.md › The cable › 1866"


def documents(*rows: tuple[str, str | None, str]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema={"id": pl.String, "title": pl.String, "text": pl.String}, orient="row")
    return frame.with_columns(batch=pl.lit("b"), metadata=pl.lit(""))


def test_each_text_unit_has_the_context_of_its_own_document():
    given = documents(("d1", "The cable", NESTED), ("d2", None, "# Alone\n\nText."), ("d3", None, "Text."))
    rows = [
        (id_, text.find(part), part)
        for id_, text in given.select("id", "text").iter_rows()
        for part in ("The cable broke.", "### 1858", "# Alone", "Text.")
        if part in text
    ]
    units = pl.DataFrame(rows, schema=["document_id", "start_char", "text"], orient="row")
    contexts = dict(zip(units["text"], heading_contexts(given, outlines_of(given), units), strict=True))
    assert contexts["The cable broke."] == "The cable › First attempt › 1857"
    assert contexts["### 1858"] == "The cable › First attempt"
    assert contexts["# Alone"] == ""
    assert heading_contexts(given, outlines_of(given), units)[-1] == ""
    told = heading_contexts(given.with_columns(metadata=pl.lit("year: 1857")), outlines_of(given), units)
    assert told.to_list()[-1] == "(year: 1857)"
    assert "The cable › First attempt › 1857 (year: 1857)" in told.to_list()


def test_the_place_of_a_text_unit_is_one_line_without_the_headings_in_its_text():
    path, day = "The voyage › Out at sea › July", date(1858, 7, 29)
    assert place_line(path, "It rained.", day) == "The voyage › Out at sea › July; 1858-07-29"
    assert place_line(path, "Calm.\n\n## July\n\nIt rained.") == "The voyage › Out at sea"
    assert place_line("The voyage", "# The voyage\n\nIt rained.") == ""
    assert place_line("", "It rained.", day) == "1858-07-29"
