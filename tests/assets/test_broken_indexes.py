"""Each check fails on an index broken for it: Dagster reports the row, the remedy and whether it blocks publishing."""

import shutil
from typing import NamedTuple

import dagster as dg
import pytest

from graphrag_assets.assets.checks import CHECKS, failed_blocking_checks, offending_rows
from graphrag_assets.assets.stages import asset_of_check, markdown_table
from graphrag_assets.store.invariants import Check
from tests.conftest import Project


class Break(NamedTuple):
    """How an index is broken, a query (run before) for what the sample must name, and whether the check blocks."""

    statement: str
    named: str
    blocking: bool = True


_FIRST = "(SELECT min(id) FROM {})"
_VECTORS = (
    "INSERT INTO embeddings BY NAME SELECT kind, id, id AS fingerprint, 'a model' AS model, [1, 0] AS vector FROM "
    "(SELECT 'text_unit' AS kind, id FROM text_units UNION ALL SELECT 'entity', id FROM entities WHERE degree > 0 "
    "UNION ALL SELECT 'community_report', id FROM community_reports)"
)
BREAKS = {
    "keys_are_unique": Break("INSERT INTO entities SELECT * FROM entities LIMIT 1", "SELECT id FROM entities LIMIT 1"),
    "relationship_ends_are_entities": Break(
        "UPDATE relationships SET target_id = 'nobody' WHERE human_readable_id = 3",
        "SELECT id FROM relationships WHERE human_readable_id = 3",
    ),
    "references_exist": Break(
        "UPDATE entities SET text_unit_ids = ['nowhere'] WHERE human_readable_id = 3",
        "SELECT id FROM entities WHERE human_readable_id = 3",
    ),
    "entities_and_relationships_stand_in_text_units": Break(
        "UPDATE entities SET text_unit_ids = NULL WHERE human_readable_id = 3",
        "SELECT id FROM entities WHERE human_readable_id = 3",
    ),
    "one_community_per_entity_and_level": Break(
        "DELETE FROM community_members WHERE level = 0 AND entity_id = (SELECT min(id) FROM entities)",
        "SELECT min(id) FROM entities",
    ),
    "children_lie_within_parents": Break(
        "UPDATE communities SET children = [] WHERE community = (SELECT min(parent) FROM communities WHERE level = 1)",
        "SELECT min(community) FROM communities WHERE parent = (SELECT min(parent) FROM communities WHERE level = 1)",
    ),
    "communities_have_the_members_listed": Break(
        "UPDATE communities SET entity_ids = list_append(entity_ids, 'stranger') WHERE community = 0",
        "SELECT 'stranger'",
    ),
    "communities_are_connected": Break(
        "DELETE FROM relationships WHERE source_id = $id OR target_id = $id".replace(
            "$id", "(SELECT entity_ids[1] FROM communities WHERE level = 0 ORDER BY size DESC LIMIT 1)"
        ),
        "SELECT community FROM communities WHERE level = 0 ORDER BY size DESC LIMIT 1",
    ),
    "nothing_stems_from_a_gone_document": Break(
        "DELETE FROM documents WHERE id = (SELECT min(id) FROM documents)",
        "SELECT min(id) FROM text_units WHERE document_id = (SELECT min(id) FROM documents)",
    ),
    "every_community_has_a_report": Break("DELETE FROM community_reports WHERE community = 7", "SELECT '| 7 | 0 |'"),
    "reports_are_current": Break(
        "UPDATE entities SET description = 'Another.' WHERE id = (SELECT entity_ids[1] FROM communities WHERE community = 7)",
        "SELECT '| 7 |'",
    ),
    "everything_searchable_has_an_embedding": Break(
        f"{_VECTORS}; DELETE FROM embeddings WHERE id = {_FIRST.format('entities')}", "SELECT min(id) FROM entities"
    ),
    "vectors_are_comparable": Break(
        f"{_VECTORS}; UPDATE embeddings SET vector = [1], model = 'another' WHERE id = {_FIRST.format('embeddings')}",
        "SELECT '| another | 1 |'",
    ),
    "few_text_units_failed": Break(
        "INSERT INTO index_errors BY NAME SELECT batch, id AS source, 'extract' AS stage, 'no answer' AS error, "
        "now()::TIMESTAMP AS first_seen FROM text_units ORDER BY id LIMIT (SELECT count(*) // 10 FROM text_units)",
        "SELECT min(id) FROM text_units",
    ),
    "text_units_are_extracted": Break(
        "UPDATE text_units SET extractor = NULL WHERE id = (SELECT min(id) FROM text_units)",
        "SELECT min(id) FROM text_units",
        blocking=False,
    ),
    "claims_are_about_entities": Break(
        "UPDATE covariates SET subject_key = 'nobody at all' WHERE id = (SELECT min(id) FROM covariates)",
        "SELECT min(id) FROM covariates",
        blocking=False,
    ),
    "citations_resolve": Break(
        "UPDATE citations SET cited_id = NULL, human_readable_id = 999999 WHERE report_id = $id".replace(
            "$id", "(SELECT min(report_id) FROM citations)"
        ),
        "SELECT '999999'",
        blocking=False,
    ),
    # The copy's input folder is empty, so all of its batches are deleted.
    "publication_is_up_to_date": Break("SELECT 1", "SELECT '4-great-eastern'", blocking=False),
    "no_input_is_skipped": Break(
        "INSERT INTO index_errors BY NAME SELECT 'a' AS batch, 'a/bad.pdf' AS source, 'load' AS stage, "
        "'This is no PDF.' AS error, 'Save it again.' AS hint",
        "SELECT 'Save it again.'",
        blocking=False,
    ),
    "documents_have_a_yield": Break(
        "DELETE FROM text_units WHERE document_id = (SELECT min(id) FROM documents)",
        "SELECT min(id) FROM documents",
        blocking=False,
    ),
}


@pytest.fixture
def copy(sample_index, project) -> Project:
    """The sample corpus, indexed and not published."""
    (project.root / "index").mkdir()
    shutil.copy(sample_index.root / "index" / "working.duckdb", project.root / "index")
    return project


def test_there_is_a_broken_index_for_every_check_and_a_whole_one_may_be_published(copy):
    assert failed_blocking_checks(copy.index) == []
    assert {name: broken.blocking for name, broken in BREAKS.items()} == {c.name: c.blocking for c in CHECKS}


def broken_copy(copy: Project, name: str) -> tuple[Check, str]:
    """Break the copy for a check; that, and what its rows must name."""
    (check,), broken = [c for c in CHECKS if c.name == name], BREAKS[name]
    with copy.index.working.transaction() as connection:
        (named,) = connection.execute(broken.named).fetchone()
        connection.execute(broken.statement)
    return check, str(named)


@pytest.mark.parametrize("name", BREAKS)
def test_broken_index_fails_its_check_with_the_row_and_a_remedy(copy, name):
    check, named = broken_copy(copy, name)
    (rows,) = offending_rows([check], copy.index)
    assert named in markdown_table(rows, rows.height, 400)
    assert check.remedy.endswith(".")
    assert (check in failed_blocking_checks(copy.index)) == BREAKS[name].blocking


@pytest.mark.parametrize("name", ["references_exist", "no_input_is_skipped"])
def test_dagster_shows_the_row_and_the_remedy_and_publishes_nothing_that_is_blocked(copy, name):
    check, named = broken_copy(copy, name)
    result = copy.check(dg.AssetCheckKey(dg.AssetKey(asset_of_check(check)), name))
    (evaluation,) = (e for e in result.get_asset_check_evaluations() if e.check_name == name)
    assert not evaluation.passed
    assert evaluation.blocking == check.blocking
    assert evaluation.severity == (dg.AssetCheckSeverity.ERROR if check.blocking else dg.AssetCheckSeverity.WARN)
    assert named in evaluation.metadata["sample"].value
    assert evaluation.metadata["remedy"].value == check.remedy
    if check.blocking:
        refused = copy.run_global(succeed=False, asset_selection=[dg.AssetKey("publication")])
        (failure,) = [event.step_failure_data for event in refused.all_events if event.is_step_failure]
        assert f"{check.statement} {check.remedy}" in failure.user_failure_data.description
        assert not (copy.root / "index" / "graphrag.duckdb").exists()
