"""A briefing that the index writes each week: an asset that asks questions of it, and its schedule."""

from pathlib import Path

import dagster as dg

from graphrag_assets import GraphRagResource

PROJECT = Path(__file__).resolve().parents[3]
QUESTION = "What do customers report, and what was done about it?"
NEW = """
SELECT title, document_date FROM documents
WHERE document_date >= $start::DATE AND document_date < $end::DATE ORDER BY document_date, title
"""
WEEKS = dg.WeeklyPartitionsDefinition(start_date="2026-01-05", day_offset=1)


@dg.asset(deps=[["support", "publication"]], group_name="briefings", partitions_def=WEEKS, kinds={"markdown"})
def weekly_briefing(context: dg.AssetExecutionContext, graphrag: GraphRagResource) -> dg.MaterializeResult:
    """One file for each week: what the reports of the index say, with citations, and the tickets of the week."""
    week = context.partition_time_window
    answer = graphrag.rag.global_(QUESTION)
    tickets = graphrag.rag.sql(NEW, {"start": week.start.date(), "end": week.end.date()})
    lines = [f"- {title} ({day})" for title, day in tickets.iter_rows()]
    text = "\n".join(
        [f"# Week of {week.start:%Y-%m-%d}", "", str(answer), "", f"## {len(lines)} new tickets", "", *lines]
    )
    file = PROJECT / "briefings" / f"{context.partition_key}.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text + "\n", encoding="utf-8")
    return dg.MaterializeResult(
        metadata={
            "briefing": dg.MarkdownMetadataValue(text),
            "file": dg.MetadataValue.path(file),
            "citations": len(answer.citations),
            "new_tickets": len(lines),
        }
    )


@dg.definitions
def defs() -> dg.Definitions:
    every_monday = dg.build_schedule_from_partitioned_job(
        dg.define_asset_job("write_briefing", [weekly_briefing], partitions_def=WEEKS), hour_of_day=7
    )
    return dg.Definitions(
        assets=[weekly_briefing],
        schedules=[every_monday],
        resources={"graphrag": GraphRagResource(index=str(PROJECT / "data/support/index"))},
    )
