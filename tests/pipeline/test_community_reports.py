"""Reports of the small hierarchy of test_report_contexts, and what of their citations is kept."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from graphrag_assets.contracts.records import Finding, ReportMaterial, ReportRecord, ReportRow
from graphrag_assets.embedded.reporter import write_reports
from graphrag_assets.pipeline.community_reports import (
    REPORT_TYPES,
    ReportInputs,
    checked_report,
    community_reports,
    references_in,
)
from graphrag_assets.text.words import count_tokens
from tests.pipeline.test_report_contexts import CLAIMS, ENTITIES, PARTS, WHOLE, relationships


def inputs(sub_reports: pl.DataFrame, entities: pl.DataFrame = ENTITIES) -> ReportInputs:
    """What the report of community 1 is written from."""
    communities = pl.DataFrame(
        {
            "id": "R",
            "human_readable_id": 1,
            "community": 1,
            "level": 0,
            "parent": -1,
            "children": [[2, 3]],
            "title": "Community 1",
            "text_unit_ids": [["u1", "u2"]],
            "period": "1866-01-01",
            "size": 5,
            "fingerprint": "of 1",
        }
    )
    return ReportInputs(communities, WHOLE, PARTS, entities, relationships(), CLAIMS, sub_reports)


def test_a_report_is_written_from_the_rows_of_its_community_or_from_reports_where_they_do_not_fit() -> None:
    seen: list[ReportMaterial] = []

    def write(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        seen.extend(materials)
        return [replace(report, writer="stand-in") for report in write_reports(materials)]

    below = pl.DataFrame(schema=REPORT_TYPES)
    (report,) = community_reports(inputs(below), write_reports, "w").iter_rows(named=True)
    shown = [report[name] for name in ("community", "level", "parent", "size", "title", "fingerprint", "model")]
    assert shown == [1, 0, -1, 5, "A, C and D", "of 1", "w"]  # the best connected
    assert "D cost 5 [Data: Claims (20)]" in report["full_content"]
    below = pl.DataFrame([{"community": 3, "title": "D, E", "summary": "E. [Data: Entities (4)]", "full_content": "F"}])
    long = ENTITIES.with_columns(description=pl.lit("is d. " * 40))
    (report,) = community_reports(inputs(below, long), write, "w", max_tokens=600).iter_rows(named=True)
    assert (report["context_tokens"], report["model"]) == (count_tokens([seen[0].context])[0], "stand-in")
    assert seen[0].rows[0] == ReportRow("Reports", 3, ("D, E",), "E.")
    assert {row.number for row in seen[0].rows if row.section == "Entities"} == {0, 1, 2}
    assert '-----Reports-----\nid,title,content\n3,"D, E",F' in seen[0].context


def test_what_a_report_cites_is_checked_against_what_it_was_written_from() -> None:
    rows = (ReportRow("Relationships", 0, ("A", "B"), ""), ReportRow("Entities", 0, ("A",), ""))
    said = "They met [Relationships (0)], (Data: Entities (0, 999)) and 【Data: entity 2】, as [Data: the letter] says."
    record = ReportRecord("Title", said, [Finding("Met.", said)], 5.0, said)
    report, removed = checked_report(record, ReportMaterial(2, 1, (), rows, ""))
    assert report.summary == "They met [Data: Relationships (0)], [Data: Entities (0)] and, as says."
    assert report.findings[0].explanation == report.rating_explanation == report.summary
    assert removed == ["Entities (999)", "Entities (2)", "the letter"]
    written = pl.DataFrame({"id": ["R"], "full_content": [report.full_content]})
    assert references_in(written).select("table_name", "human_readable_id", "is_marked").rows() == [
        ("relationships", 0, False),
        ("entities", 0, False),
    ]


def test_a_report_may_cite_what_the_reports_in_its_context_cite() -> None:
    context = "-----Reports-----\nid,title,content\n4,Ada,She met Ben [Data: Entities (7)].\n\n-----Entities-----\nid,entity\n5,[Data: Entities (8)]"
    material = ReportMaterial(2, 1, (), (), context)
    report = ReportRecord("T", "A [Data: Entities (5, 7, 8); Reports (4)].", [], 5.0, "")
    record, removed = checked_report(report, material)
    assert (record.summary, removed) == ("A [Data: Entities (5, 7); Reports (4)].", ["Entities (8)"])
