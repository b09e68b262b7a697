"""Reports of a small hierarchy: community 0 = {a, b, c} with sub-communities 1 = {a, b} and 2 = {c}."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from graphrag_assets.contracts.records import Finding, ReportMaterial, ReportRecord
from graphrag_assets.embedded.reporter import write_reports
from graphrag_assets.pipeline.community_reports import (
    REPORT_TYPES,
    ReportInputs,
    checked_report,
    community_reports,
    references_in,
)
from graphrag_assets.text.words import count_tokens

NO_REPORTS = pl.DataFrame(schema=REPORT_TYPES)


def graph(sub_reports: pl.DataFrame = NO_REPORTS, description: str = "Ada was first.") -> ReportInputs:
    """What the report of community 0 is written from."""
    communities = pl.DataFrame(
        {
            "id": ["R"],
            "human_readable_id": [0],
            "community": [0],
            "level": [0],
            "parent": [-1],
            "children": [[1, 2]],
            "title": ["Community 0"],
            "text_unit_ids": [["u1", "u2"]],
            "period": ["1866-01-01"],
            "size": [3],
            "fingerprint": ["of 0"],
        }
    )
    members = pl.DataFrame({"community": [0, 0, 0], "entity_id": ["a", "b", "c"]})
    sub_members = pl.DataFrame({"child": [1, 1, 2], "entity_id": ["a", "b", "c"]})
    entities = pl.DataFrame(
        {
            "id": ["a", "b", "c"],
            "human_readable_id": [0, 1, 2],
            "title": ["Ada", "Ben", "Cork"],
            "type": ["PERSON", "PERSON", "GEO"],
            "description": [description, "Ben was second.", "Cork is a town."],
            "degree": [1, 2, 1],
        }
    )
    relationships = pl.DataFrame(
        {
            "id": ["ab", "bc"],
            "human_readable_id": [0, 1],
            "source": ["Ada", "Ben"],
            "target": ["Ben", "Cork"],
            "type": ["MET", "WENT_TO"],
            "description": ["Ada met Ben.", "Ben went to Cork."],
            "combined_degree": [3, 3],
            "relations": ["", ""],
            "source_id": ["a", "b"],
            "target_id": ["b", "c"],
        }
    )
    claims = pl.DataFrame(
        schema={
            **dict.fromkeys(
                ("subject_entity_id", "subject_id", "type", "status", "start_date", "end_date", "description"),
                pl.String,
            ),
            "human_readable_id": pl.Int64,
        }
    )
    return ReportInputs(communities, members, sub_members, entities, relationships, claims, sub_reports)


def part(description: str = "Ada was first.") -> ReportInputs:
    """What the report of community 1 is written from."""
    whole = graph(description=description)
    return whole._replace(
        communities=whole.communities.with_columns(
            id=pl.lit("L"),
            fingerprint=pl.lit("of 1"),
            title=pl.lit("Community 1"),
            size=2,
            parent=0,
            level=1,
            **dict.fromkeys(("community", "human_readable_id"), 1),
            children=pl.lit([], pl.List(pl.Int64)),
        ),
        members=pl.DataFrame({"community": [1, 1], "entity_id": ["a", "b"]}),
        sub_members=whole.sub_members.clear(),
        entities=whole.entities.head(2),
        relationships=whole.relationships.head(1),
    )


def test_a_report_is_written_from_what_its_community_has():
    whole = community_reports(graph(), write_reports, "w").row(0, named=True)
    shown = [whole[name] for name in ("community", "level", "parent", "size", "title", "fingerprint", "model")]
    assert shown == [0, 0, -1, 3, "Ben, Ada and Cork", "of 0", "w"]
    assert "Ben went to Cork. [Data: Relationships (1)]" in whole["full_content"]
    assert community_reports(part(), write_reports, "w")["title"].to_list() == ["Ben and Ada"]


def test_the_report_of_a_sub_community_replaces_its_rows_where_they_do_not_fit():
    seen: list[ReportMaterial] = []

    def write(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        seen.extend(materials)
        return [replace(report, writer="stand-in") for report in write_reports(materials)]

    long = "Ada was first. " * 16
    below = community_reports(part(long), write_reports, "w")
    above = community_reports(graph(below, long), write, "w", max_tokens=200)
    assert [(row.section, row.number) for row in seen[0].rows] == [
        ("Reports", 1),
        ("Entities", 2),
        ("Relationships", 1),
    ]
    assert "-----Reports-----\nid,title,content\n1,Ben and Ada," in seen[0].context
    assert above.select("context_tokens", "model").rows() == [(count_tokens([seen[0].context])[0], "stand-in")]


def test_what_a_report_cites_is_checked_against_what_it_was_written_from():
    def write(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        said = "They met [Relationships (0)], (Data: Entities (0, 999)) and 【Data: entity 2】, as [Data: the letter] says."
        return [ReportRecord("Title", said, [Finding("Met.", said)], 5.0, said) for _ in materials]

    removed: list[str] = []
    written = pl.concat(community_reports(inputs, write, "model", removed=removed) for inputs in (graph(), part()))
    whole, sub = written.iter_rows(named=True)
    met = "They met [Data: Relationships (0)], [Data: Entities (0)] and"
    assert whole["summary"] == f"{met} [Data: Entities (2)], as says."
    # Entity 2 exists, but the sub-community does not have it.
    assert sub["summary"] == f"{met}, as says."
    assert sub["findings"][0]["explanation"] == sub["rating_explanation"] == sub["summary"]
    assert "999" not in whole["full_content"] + sub["full_content_json"]
    assert removed == ["Entities (999)", "the letter", "Entities (999)", "Entities (2)", "the letter"]
    assert not references_in(written)["is_marked"].any()


def test_a_report_may_cite_what_the_reports_in_its_context_cite():
    context = "-----Reports-----\nid,title,content\n4,Ada,She met Ben [Data: Entities (7)].\n\n-----Entities-----\nid,entity\n5,[Data: Entities (8)]"
    material = ReportMaterial(2, 1, (), (), context)
    report = ReportRecord("T", "A [Data: Entities (5, 7, 8); Reports (4)].", [], 5.0, "")
    record, removed = checked_report(report, material)
    assert (record.summary, removed) == ("A [Data: Entities (5, 7); Reports (4)].", ["Entities (8)"])
