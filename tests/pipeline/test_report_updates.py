"""Reports of a small hierarchy: community 0 = {a, b, c} with sub-communities 1 = {a, b} and 2 = {c}."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest

from graphrag_assets.contracts.records import Finding, ReportMaterial, ReportRecord
from graphrag_assets.embedded.reporter import write_reports
from graphrag_assets.pipeline import report_updates as reports
from graphrag_assets.pipeline.report_citations import checked_report, references_in, resolved
from graphrag_assets.pipeline.report_updates import (
    ReportInputs,
    community_reports,
    empty_reports,
    stale_reports,
)
from graphrag_assets.store.schema import IMPORTED
from graphrag_assets.text.words import count_tokens


def graph(description: str = "Ada was first.") -> ReportInputs:
    communities = pl.DataFrame(
        {
            "id": ["R", "L", "S"],
            "human_readable_id": [0, 1, 2],
            "community": [0, 1, 2],
            "level": [0, 1, 1],
            "parent": [-1, 0, 0],
            "children": [[1, 2], [], []],
            "title": ["Community 0", "Community 1", "Community 2"],
            "entity_ids": [["a", "b", "c"], ["a", "b"], ["c"]],
            "relationship_ids": [["ab", "bc"], ["ab"], []],
            "text_unit_ids": [["u1", "u2"], ["u1"], ["u2"]],
            "period": ["1866-01-01"] * 3,
            "size": [3, 2, 1],
        },
        schema_overrides={"children": pl.List(pl.Int64)},
    )
    members = pl.DataFrame(
        {"community": [0, 0, 0, 1, 1, 2], "level": [0, 0, 0, 1, 1, 1], "entity_id": ["a", "b", "c", "a", "b", "c"]}
    )
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
    return ReportInputs(communities, members, entities, relationships, claims)


@pytest.fixture
def written() -> list[int]:
    return []


def counting(written: list[int]):
    def write(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        written.append(len(materials))
        return write_reports(materials)

    return write


def test_every_community_of_two_or_more_has_a_report_and_the_deepest_level_is_written_first(written):
    reports = community_reports(graph(), empty_reports(), counting(written), "w")
    assert written == [1, 1]
    assert reports.select("community", "level", "parent", "size", "title").rows() == [
        (0, 0, -1, 3, "Ben, Ada and Cork"),
        (1, 1, 0, 2, "Ben and Ada"),
    ]
    assert "Ben went to Cork. [Data: Relationships (1)]" in reports["full_content"][0]


@pytest.mark.parametrize(("model", "kept"), [("w", [0, 1]), (IMPORTED, [0, 1, 2])])
def test_only_an_imported_report_on_an_entity_that_is_alone_stays(model, kept):
    reports = community_reports(graph(), empty_reports(), write_reports, "w")
    alone = reports[1:].with_columns(
        id=pl.lit("alone"), community=pl.lit(2, pl.Int64), model=pl.lit(model), fingerprint=pl.lit(None, pl.String)
    )
    again = community_reports(graph(), pl.concat([reports, alone]), write_reports, "w")
    assert again["community"].to_list() == kept
    assert community_reports(graph(), again, write_reports, "w").equals(again)


def test_unchanged_reports_are_kept_without_writing(written):
    first = community_reports(graph(), empty_reports(), write_reports, "w")
    again = community_reports(graph(), first, counting(written), "w")
    assert sum(written) == 0
    assert again.equals(first)


def test_a_changed_description_rewrites_the_reports_of_its_communities_only(written):
    first = community_reports(graph(), empty_reports(), write_reports, "w")
    second = community_reports(graph("Ada was last."), first, counting(written), "w")
    assert sum(written) == 2  # {a, b} and the whole; {c} is alone and has none
    changed = first.join(second, on="community", suffix="_new").filter(
        pl.col("fingerprint") != pl.col("fingerprint_new")
    )
    assert changed["community"].to_list() == [0, 1]


def test_the_tokens_of_a_context_are_counted_when_its_report_is_written(monkeypatch):
    contexts: list[str] = []

    def seen(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        contexts.extend(material.context for material in materials)
        return write_reports(materials)

    first = community_reports(graph(), empty_reports(), seen, "r")
    assert sorted(first["context_tokens"].to_list()) == sorted(count_tokens(contexts))
    monkeypatch.setattr(reports, "count_tokens", lambda texts, _: [-1 for _ in texts])
    again = community_reports(graph("Ada was last."), first, write_reports, "r")
    assert again["context_tokens"].to_list() == [-1, -1]


def test_another_reporter_rewrites_all(written):
    first = community_reports(graph(), empty_reports(), write_reports, "w")
    community_reports(graph(), first, counting(written), "other")
    assert sum(written) == 2


def test_reports_written_from_other_inputs_are_stale():
    reports = community_reports(graph(), empty_reports(), write_reports, "w")
    assert stale_reports(graph(), reports, "w").to_list() == []
    assert stale_reports(graph("Ada was last."), reports, "w").to_list() == [0, 1]
    assert stale_reports(graph(), reports.filter(pl.col("community") != 1), "w").to_list() == [1]


def standing_in(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
    """A fallback writer: its reports have another writer's name."""
    return [replace(report, writer="stand-in") for report in write_reports(materials)]


def test_a_report_that_another_writer_stood_in_for_makes_none_stale():
    tight = 200  # tokens: the whole community is written from the reports of its parts
    seen: list[str] = []

    def write(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        seen.extend(material.context for material in materials)
        return standing_in(materials) if materials[0].size < 3 else write_reports(materials)

    reports = community_reports(graph("Ada was first. " * 16), empty_reports(), write, "w", tight)
    assert "-----Reports-----" in seen[-1]
    assert reports["model"].to_list() == ["w", "stand-in"]
    assert stale_reports(graph("Ada was first. " * 16), reports, "w", tight).to_list() == []
    assert stale_reports(graph("Ada was last. " * 16), reports, "w", tight).to_list() == [0, 1]


def test_no_communities_give_no_reports():
    inputs = ReportInputs(*(frame.clear() for frame in graph()[:5]))
    assert community_reports(inputs, empty_reports(), write_reports, "w").is_empty()


def test_what_a_report_cites_is_checked_against_what_it_was_written_from():
    def write(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        said = "They met [Relationships (0)], (Data: Entities (0, 999)) and 【Data: entity 2】, as [Data: the letter] says."
        return [ReportRecord("Title", said, [Finding("Met.", said)], 5.0, said) for _ in materials]

    inputs = graph()
    written = community_reports(inputs, empty_reports(), write, "model")
    whole, part = written.sort("community").iter_rows(named=True)
    met = "They met [Data: Relationships (0)], [Data: Entities (0)] [unresolved: Entities (999)] and "
    assert whole["summary"] == f"{met}[Data: Entities (2)], as [unresolved: the letter] says."
    # Entity 2 exists, but the sub-community does not have it.
    assert part["summary"] == f"{met}[unresolved: Entities (2)], as [unresolved: the letter] says."
    assert part["findings"][0]["explanation"] == part["rating_explanation"] == part["summary"]
    assert part["full_content"].count("[unresolved: Entities (999)]") == 2
    assert "[unresolved: Entities (999)]" in part["full_content_json"]
    numbers = inputs.entities.select(table_name=pl.lit("entities"), id="id", human_readable_id="human_readable_id")
    lost = resolved(references_in(written), numbers).filter(
        pl.col("cited_id").is_null() & (pl.col("table_name") != "relationships")
    )
    assert lost.select("table_name", "human_readable_id").rows() == [
        *[("entities", 999), ("the letter", None)],
        *[("entities", 2), ("entities", 999), ("the letter", None)],
    ]


def test_a_report_may_cite_what_the_reports_in_its_context_cite():
    context = "-----Reports-----\nid,title,content\n4,Ada,She met Ben [Data: Entities (7)].\n\n-----Entities-----\nid,entity\n5,[Data: Entities (8)]"
    material = ReportMaterial(2, 1, (), (), context)
    record = checked_report(ReportRecord("T", "A [Data: Entities (5, 7, 8); Reports (4)].", [], 5.0, ""), material)
    assert record.summary == "A [Data: Entities (5, 7); Reports (4)] [unresolved: Entities (8)]."
