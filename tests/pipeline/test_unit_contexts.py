"""Contexts of text units: headings of Markdown, and which of them are in force where a unit begins."""

import polars as pl

from graphrag_assets.pipeline.chunking import ChunkOptions, chunk_documents
from graphrag_assets.pipeline.unit_contexts import heading_contexts, heading_path, headings, joined

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
    return heading_path(headings(text), text.index(passage))


def test_headings_have_their_levels_and_places():
    found = headings(NESTED)
    assert [(heading.level, heading.title) for heading in found] == [
        (1, "The cable"),
        (2, "First attempt"),
        (3, "1857"),
        (3, "1858"),
        (2, "Success"),
    ]
    assert all(NESTED[heading.start :].startswith("#" * heading.level + " ") for heading in found)


def test_a_passage_stands_under_the_headings_in_force_where_it_begins():
    assert path_at(NESTED, "Preface") == ["The cable"]
    assert path_at(NESTED, "The cable broke") == ["The cable", "First attempt", "1857"]
    assert path_at(NESTED, "The cable worked") == ["The cable", "First attempt", "1858"]
    assert path_at(NESTED, "The Great Eastern") == ["The cable", "Success"]


def test_a_passage_that_begins_with_a_heading_stands_under_its_parents():
    assert path_at(NESTED, "# The cable") == []
    assert path_at(NESTED, "### 1858") == ["The cable", "First attempt"]
    assert path_at(NESTED, "## Success") == ["The cable"]


def test_a_passage_that_begins_inside_a_heading_stands_under_it():
    assert path_at(NESTED, "attempt") == ["The cable", "First attempt"]


def test_skipped_levels_close_what_is_as_deep_or_deeper():
    text = "# A\n\n### C\n\nin c\n\n## B\n\nin b\n\n#### D\n\nin d\n\n### E\n\nin e\n\n# F\n\nin f\n"
    assert path_at(text, "in c") == ["A", "C"]
    assert path_at(text, "in b") == ["A", "B"]
    assert path_at(text, "in d") == ["A", "B", "D"]
    assert path_at(text, "in e") == ["A", "B", "E"]
    assert path_at(text, "in f") == ["F"]


def test_marks_in_fenced_code_are_no_headings():
    text = "# Guide\n\n```python\n# a comment\n~~~\n```\n\n## Next\n\n~~~~\n# another\n~~~\n# still code\n~~~~\n\n### Last\n"
    assert [heading.title for heading in headings(text)] == ["Guide", "Next", "Last"]


def test_a_line_of_code_in_backticks_opens_no_fence():
    assert [h.title for h in headings("```x``` is code\n\n# Heading\n")] == ["Heading"]


def test_a_fence_that_is_never_closed_reaches_to_the_end():
    assert headings("```\n# code\n\n# code too\n") == []


def test_what_only_resembles_a_heading_is_none():
    text = "#hashtag\n\n####### seven\n\n    # indented code\n\nNo. # 5 of them\n\n#\n\n# \n"
    assert headings(text) == []


def test_headings_are_read_without_their_markup():
    text = "# *The* **cable** of `1866` #\n\n## See [the map](https://example.org/a_b) and snake_case\n"
    assert [h.title for h in headings(text)] == ["The cable of 1866", "See the map and snake_case"]


def test_a_title_that_repeats_the_first_heading_stands_once():
    assert joined("The Cable", ["The cable", "1866"]) == "The Cable › 1866"
    assert joined("The **Cable**", ["The Cable"]) == "The **Cable**"
    assert joined("cable.md", ["The cable", "1866"]) == "cable.md › The cable › 1866"


def test_there_is_no_context_without_title_and_headings():
    assert joined("", []) == ""
    assert joined("", ["1866"]) == "1866"


def test_a_long_path_keeps_the_title_and_the_innermost_heading():
    context = joined("T" * 500, ["middle " * 20, "inner " * 50])
    title, inner = context.split(" › ")
    assert title == "T" * 199 + "…"
    assert inner.startswith("inner inner")
    assert len(context) <= 403
    assert joined("T", ["a" * 150, "b" * 150, "c" * 150]) == f"T › {'b' * 150} › {'c' * 150}"


def documents(*rows: tuple[str, str | None, str]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema={"id": pl.String, "title": pl.String, "text": pl.String}, orient="row")
    return frame.with_columns(batch=pl.lit("b"))


def test_each_text_unit_has_the_context_of_its_own_document():
    given = documents(("d1", "The cable", NESTED), ("d2", None, "# Alone\n\nText."), ("d3", None, "Text."))
    units = chunk_documents(given, ChunkOptions("sentences"))
    contexts = dict(zip(units["text"], heading_contexts(given, units), strict=True))
    assert contexts["The cable broke."] == "The cable › First attempt › 1857"
    assert contexts["### 1858"] == "The cable › First attempt"
    assert contexts["# Alone"] == ""
    assert heading_contexts(given, units)[-1] == ""


def test_a_text_unit_without_a_place_has_the_title():
    units = pl.DataFrame({"document_id": ["d1"], "start_char": [None]}, schema_overrides={"start_char": pl.Int64})
    assert heading_contexts(documents(("d1", "The cable", NESTED)), units).to_list() == ["The cable"]
