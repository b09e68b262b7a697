"""Checks as Dagster runs them: a broken index is not published, and the failing check shows rows and the remedy."""

import dagster as dg
import pytest

TEXT = """Captain James Anderson commanded the Great Eastern. The Great Eastern left Valentia with Cyrus Field.

William Thomson met Cyrus Field in London. William Thomson sailed in the Agamemnon with Samuel Canning.
"""


@pytest.fixture
def indexed(start_with):
    return start_with({"one/a.txt": TEXT})


def failing(project) -> dict[str, dg.AssetCheckEvaluation]:
    """Failed checks of the index as it is."""
    result = project.check(succeed=False)
    return {e.check_name: e for e in result.get_asset_check_evaluations() if not e.passed}


def _checks() -> list[dg.AssetCheckKey]:
    from graphrag_assets.definitions import defs

    return list(defs().resolve_asset_graph().asset_check_keys)


def corrupt(project, statement: str) -> None:
    with project.index.working.transaction() as connection:
        connection.execute(statement)


@pytest.mark.extended
def test_all_checks_pass_on_a_good_index(indexed):
    result = indexed.run_global()
    evaluations = result.get_asset_check_evaluations()
    assert len(evaluations) == len(_checks())
    assert [e.check_name for e in evaluations if not e.passed] == []


def test_a_failing_check_shows_offending_rows_and_the_remedy(indexed):
    corrupt(indexed, "UPDATE relationships SET target_id = 'nobody'")
    evaluation = failing(indexed)["relationship_ends_are_entities"]
    assert evaluation.metadata["offending_rows"].value > 0
    assert "| id |" in evaluation.metadata["sample"].value
    assert "update_index" in evaluation.metadata["remedy"].value


def test_a_disconnected_community_is_found(indexed):
    corrupt(indexed, "DELETE FROM relationships")
    assert "communities_are_connected" in failing(indexed)


def test_a_report_of_an_older_graph_is_found(indexed):
    corrupt(indexed, "UPDATE entities SET description = 'Something else.'")
    assert "reports_are_current" in failing(indexed)


@pytest.mark.long
def test_a_blocking_failure_keeps_the_publication_as_it_is(indexed):
    before = indexed.sql("SELECT content_digest FROM publication")
    indexed.write("one/b.txt", "Robert Halpin met Daniel Gooch in London.")
    indexed.run_batch("one")
    # Mentions of a document that is gone: what a lost delete would leave.
    corrupt(
        indexed,
        "INSERT INTO text_units BY NAME SELECT * REPLACE ('ghost' AS id, 'gone' AS document_id) FROM text_units LIMIT 1",
    )
    result = indexed.run_global(succeed=False)
    failed = {e.check_name for e in result.get_asset_check_evaluations() if not e.passed and e.blocking}
    assert failed == {"nothing_stems_from_a_gone_document"}
    assert indexed.sql("SELECT content_digest FROM publication") == before


def test_the_publication_itself_refuses_a_broken_index_when_no_check_was_run(indexed):
    before = indexed.sql("SELECT content_digest FROM publication")
    corrupt(indexed, "INSERT INTO entities SELECT * FROM entities LIMIT 1")
    result = indexed.run_global(succeed=False, asset_selection=[dg.AssetKey("publication")])
    (failure,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    assert (
        "Keys are unique in every table. Launch the job update_index with which: ALL"
        in failure.user_failure_data.description
    )
    assert indexed.sql("SELECT content_digest FROM publication") == before


@pytest.mark.parametrize("asset", ["entities", "communities", "community_reports", "embeddings"])
def test_a_single_asset_can_be_materialized(indexed, asset):
    result = indexed.run_global(asset_selection=[dg.AssetKey(asset)])
    keys = {
        m.asset_key.to_user_string()
        for n in result.all_events
        if n.is_step_materialization
        for m in [n.materialization]
    }
    assert keys == {asset}
