"""Contexts of text units: headings of Markdown, and which of them are in force where a unit begins."""

from datetime import date

import polars as pl

from graphrag_assets.pipeline.unit_contexts import joined, place_line, with_contexts
from graphrag_assets.reading.markdown import headings
from graphrag_assets.store import schema
from graphrag_assets.store.schema import polars_schema

NESTED = """# The cable

Preface.

## First attempt

### 1857

The cable broke.

##### Costs

It was dear.

### 1858

The cable worked for three weeks.

## Success

The Great Eastern sailed.
"""


PAGE = {"start_char": 0, "kind": "page", "value": "7"}


def units_of(text: str, *passages: str, title: str | None = None, metadata: str = "") -> pl.DataFrame:
    """The text units that these passages are, in their contexts."""
    document = {"id": "d", "title": title, "text": text, "metadata": metadata, "places": [PAGE]}
    places = {"places": polars_schema(schema.DOCUMENTS)["places"]}
    documents = pl.DataFrame([document], schema_overrides=places | {"title": pl.String})
    starts = [text.index(passage) for passage in passages]
    ends = [start + len(passage) for start, passage in zip(starts, passages, strict=True)]
    units = pl.DataFrame({"document_id": "d", "start_char": starts, "end_char": ends})
    return with_contexts(documents, units)


def test_a_unit_has_the_headings_in_force_where_it_begins_and_those_within_it() -> None:
    passages = ("Preface", "The cable broke.\n\n##### Costs", "It was dear", "The cable worked", "The Great Eastern")
    units = units_of(NESTED, *passages)
    assert units["context"].to_list() == [
        "The cable",
        "The cable › First attempt › 1857",
        "The cable › First attempt › 1857 › Costs",
        "The cable › First attempt › 1858",
        "The cable › Success",
    ]
    assert units["headings"][1].to_list() == ["The cable", "First attempt", "1857", "Costs"]
    assert units["page"].to_list() == [7] * 5


def test_a_unit_that_begins_with_a_heading_has_its_parents() -> None:
    units = units_of(NESTED, "# The cable", "### 1858", "## Success")
    assert units["context"].to_list() == ["", "The cable › First attempt", "The cable"]


def test_a_context_has_the_title_once_the_metadata_and_the_columns_of_a_table() -> None:
    text = "# The Cable\n\n## 1866\n\n| year | miles |\n|---|---|\n| 1857 | 300 |\n| 1866 | 1852 |\n"
    units = units_of(text, "## 1866", "| 1866", title="The cable", metadata="author: Field")
    assert units["context"].to_list() == [
        "The cable (author: Field)",
        "The cable › 1866 (author: Field) year | miles",
    ]
    assert joined("cable.md", ["The cable", "1866"]) == "cable.md › The cable › 1866"


def test_marks_in_code_and_text_that_resembles_a_heading_are_no_headings() -> None:
    text = "# Guide\n\n```python\n# a comment\n~~~\n```\n\n## Next\n\n~~~~\n# another\n~~~\n# still code\n~~~~\n\n### Last\n"
    assert [heading.title for heading in headings(text)] == ["Guide", "Next", "Last"]
    assert headings("#hashtag\n\n####### seven\n\n    # indented code\n\nNo. # 5 of them\n\n#\n\n# \n") == []


def test_the_place_of_a_text_unit_is_one_line_without_the_headings_in_its_text() -> None:
    path, day = "The voyage › Out at sea › July", date(1858, 7, 29)
    assert place_line(path, "It rained.", day) == "The voyage › Out at sea › July; 1858-07-29"
    assert place_line(path, "Calm.\n\n## July\n\nIt rained.") == "The voyage › Out at sea"
    assert place_line("The voyage", "# The voyage\n\nIt rained.") == ""
    assert place_line("", "It rained.", day) == "1858-07-29"
