"""Contexts of reports from text units: which ones, in which order, and what stands for them when they are too long."""

from datetime import date

import polars as pl

from graphrag_assets.pipeline.report_contexts import fitted_contexts, source_lines, source_rows

WHOLE = pl.DataFrame({"community": [0, 0, 0], "entity_id": ["a", "b", "c"]})
PARTS = pl.DataFrame({"entity_id": ["a", "b", "c"], "child": [1, 1, 2]})
ENTITIES = pl.DataFrame(
    {"id": ["a", "b", "c"], "degree": [1, 5, 2], "text_unit_ids": [["u1", "u2"], ["u2", "u3"], ["u3"]]}
)
TEXTS = {"u1": "Ada wrote.", "u2": "Ada met Ben.", "u3": "Ben\nwent to Cork."}
NO_REPORTS = pl.DataFrame(schema={"community": pl.Int64, "title": pl.String, "full_content": pl.String})


def lines(repeat: int = 1) -> pl.DataFrame:
    texts = [f"{text} " * repeat for text in TEXTS.values()]
    return source_lines(pl.DataFrame({"id": list(TEXTS), "human_readable_id": [1, 2, 3], "text": texts}))


def context(sources: pl.DataFrame, reports: pl.DataFrame = NO_REPORTS, limit: int = 8000) -> str:
    return fitted_contexts(source_rows(WHOLE, PARTS, ENTITIES, sources), reports, limit).contexts["context"].item()


def test_text_units_come_by_the_degrees_of_the_entities_that_they_name():
    assert context(lines()) == "-----Sources-----\nid,text\n3,Ben went to Cork. \n2,Ada met Ben. \n1,Ada wrote. "


def test_over_the_limit_a_report_replaces_the_text_units_of_its_community_alone():
    reports = pl.DataFrame({"community": [1], "title": ["Ada and Ben"], "full_content": ["They met."]})
    shown = context(lines(40), reports, 350)
    assert shown.startswith("-----Reports-----\nid,title,content\n1,Ada and Ben,They met.")
    assert "3,Ben went to Cork." in shown  # names entities of both sub-communities
    assert "Ada wrote" not in shown


def test_passages_of_dated_documents_end_with_their_dates_and_others_do_not():
    dated = pl.DataFrame(
        {"id": ["u1", "u2"], "human_readable_id": [1, 2], "text": list(TEXTS.values())[:2]}
    ).with_columns(document_date=pl.Series([None, date(1866, 7, 27)]))
    assert context(source_lines(dated)) == (
        "-----Sources-----\nid,text,document_date\n2,Ada met Ben.,1866-07-27\n1,Ada wrote."
    )
