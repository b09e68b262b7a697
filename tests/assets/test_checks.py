"""Checks as Dagster runs them: a broken index is not published, and the failing check shows rows and the remedy."""

import dagster as dg
import pytest

TEXT = """Captain James Anderson commanded the Great Eastern. The Great Eastern left Valentia with Cyrus Field.

William Thomson met Cyrus Field in London. William Thomson sailed in the Agamemnon with Samuel Canning.
"""


@pytest.fixture
def indexed(start_with):
    return start_with({"one/a.txt": TEXT})


def _checks() -> list[dg.AssetCheckKey]:
    from graphrag_assets.definitions import defs

    return list(defs().resolve_asset_graph().asset_check_keys)


@pytest.mark.extended
def test_all_checks_pass_on_a_good_index(indexed):
    result = indexed.run_global()
    evaluations = result.get_asset_check_evaluations()
    assert len(evaluations) == len(_checks())
    assert [e.check_name for e in evaluations if not e.passed] == []


@pytest.mark.parametrize("asset", ["entities", "embeddings"])
def test_a_single_asset_can_be_materialized(indexed, asset):
    result = indexed.run_global(asset_selection=[dg.AssetKey(asset)])
    keys = {
        m.asset_key.to_user_string()
        for n in result.all_events
        if n.is_step_materialization
        for m in [n.materialization]
    }
    assert keys == {asset}
