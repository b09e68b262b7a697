"""Reports are those of the present graph, and only those are written whose community has changed."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from graphrag_assets.assets import reports
from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.reports import stale_reports, write_community_reports
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.records import ReportMaterial, ReportRecord
from graphrag_assets.store import schema
from tests.comparison import SENTENCES, assert_reports, index_all

TABLES = ("FROM community_reports ORDER BY ALL", "FROM citations ORDER BY ALL")


@pytest.fixture
def index(start_with) -> Index:
    draw = random.Random(0)
    texts = [" ".join(draw.choice(SENTENCES) for _ in range(12)) for _ in range(12)]
    return start_with(
        {f"{n % 3}/{n}.md": f"# Part {n}\n\n{text}" for n, text in enumerate(texts)}, chunk_size="60"
    ).index


def counting(index: Index, written: list[ReportMaterial]) -> IndexingModels:
    models = index.models()

    def write(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        written.extend(materials)
        return models.write_reports(materials)

    return replace(models, write_reports=write)


def change(index: Index, statement: str) -> None:
    with index.working.transaction() as connection:
        connection.execute(statement)


@pytest.mark.extended
def test_after_any_edits_reports_and_citations_are_those_of_a_rewrite(index) -> None:
    folder = Path(index.settings.input_folder)
    for edit in (
        (folder / "0" / "0.md").unlink,
        lambda: (folder / "1" / "1.md").rename(folder / "1" / "renamed.md"),
        lambda: (folder / "2" / "2.md").write_text(f"# Costs\n\n{' '.join(SENTENCES[:9])}"),
    ):
        edit()
        index_all(index)
        kept = index.working.read_all(*TABLES)
        assert_reports(index)
        another_writer = replace(index.models(), reporter="another")  # who writes every report again, the same
        assert write_community_reports.update(index, "all", another_writer).metadata["reports_kept"] == 0
        write_community_reports.update(index, "back")
        for before, after in zip(kept, index.working.read_all(*TABLES), strict=True):
            assert_frame_equal(before, after)


def test_nothing_is_written_without_a_change(index) -> None:
    written: list[ReportMaterial] = []
    kept = write_community_reports.update(index, "again", counting(index, written))
    assert written == []
    assert kept.metadata["reports_kept"] == index.working.read("SELECT count(*) FROM community_reports").item() > 0
    assert [(change.inserted, change.deleted) for change in kept.changes.values()] == [(0, 0), (0, 0)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entities SET description = 'Something else.' WHERE id = $member",
        "UPDATE relationships SET description = 'Something else.' WHERE source_id = $member",
        "UPDATE relationships SET relations = 'LED; MET' WHERE source_id = $member",
        "UPDATE covariates SET description = 'Something else.' WHERE id = (SELECT min(id) FROM resolved_claims "
        "WHERE subject_entity_id IS NOT NULL)",
    ],
)
def test_a_change_rewrites_the_reports_of_its_communities_alone(index, statement) -> None:
    member = "(SELECT source_id FROM relationships ORDER BY ALL LIMIT 1)"
    change(index, statement.replace("$member", member))
    stale = stale_reports(index, index.models())
    assert "reports_are_current" in [check.name for check in failed_blocking_checks(index)]
    written: list[ReportMaterial] = []
    write_community_reports.update(index, "again", counting(index, written))
    assert 0 < len(written) == stale.height < index.working.read("SELECT count(*) FROM community_reports").item() / 2
    assert failed_blocking_checks(index) == []
    assert_reports(index)


def test_after_a_crash_the_rest_of_the_reports_is_written(index, monkeypatch) -> None:
    complete = index.working.read_all(*TABLES)
    change(index, "UPDATE entities SET title = title || ' the Great'")
    monkeypatch.setattr(reports, "ENTITIES_PER_PART", 5)
    models, written = index.models(), []

    def write(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        if len(written) > 3:
            raise KeyboardInterrupt
        written.append(len(materials))
        return models.write_reports(materials)

    with pytest.raises(KeyboardInterrupt):
        write_community_reports.update(index, "crash", replace(models, write_reports=write))
    rest: list[ReportMaterial] = []
    write_community_reports.update(index, "again", counting(index, rest))
    assert len(rest) == complete[0].height - sum(written)
    assert_reports(index)


def test_an_imported_report_stays_while_its_community_does(index) -> None:
    """It comes without a fingerprint. One on an entity that is alone stays too; others have none."""
    alone = index.working.read("SELECT community FROM communities WHERE size = 1 ORDER BY ALL")["community"][0]
    copy = (
        f"INSERT INTO community_reports SELECT * REPLACE ('alone' AS id, {alone} AS community, $model AS model) "
        "FROM community_reports WHERE community = 1"
    )
    change(index, copy.replace("$model", "'another'"))
    change(index, f"UPDATE community_reports SET model = '{schema.IMPORTED}', fingerprint = NULL WHERE community = 1")
    write_community_reports.update(index, "adopted", index.models())
    of_alone = f"SELECT model FROM community_reports WHERE community = {alone}"
    assert index.working.read(of_alone).is_empty()
    change(index, copy.replace("$model", f"'{schema.IMPORTED}'"))
    change(index, f"UPDATE community_reports SET fingerprint = NULL WHERE community = {alone}")
    written: list[ReportMaterial] = []
    write_community_reports.update(index, "kept", counting(index, written))
    assert (written, index.working.read(of_alone).rows()) == ([], [(schema.IMPORTED,)])
    inside = f"(SELECT unnest(entity_ids) FROM communities WHERE community IN (1, {alone}))"
    change(index, f"UPDATE entities SET description = 'Something else.' WHERE id IN {inside}")
    write_community_reports.update(index, "changed", index.models())
    assert index.working.read(of_alone).is_empty()
    assert index.working.read(f"FROM community_reports WHERE model = '{schema.IMPORTED}'").is_empty()
