"""What the UI calls unsynced: data versions follow the contents of tables, code versions the code that makes them."""

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from graphrag_assets.assets.index_names import BATCH_ASSETS, GLOBAL_ASSETS
from tests.conftest import Project, repository

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."


@pytest.fixture
def indexed(project: Project) -> Project:
    project.write("a/text.txt", TEXT)
    project.write("b/text.txt", TEXT.replace("Field", "Canning"))
    project.run("update_index")
    return project


def version(project: Project, asset: str, batch: str | None = None) -> str:
    key = dg.AssetKey(asset)
    if batch is None:
        return project.instance.get_latest_materialization_event(key).asset_materialization.tags["dagster/data_version"]
    records = project.instance.fetch_materializations(dg.AssetRecordsFilter(asset_key=key, asset_partitions=[batch]), 1)
    return records.records[0].asset_materialization.tags["dagster/data_version"]


def unsynced(project: Project) -> set[tuple[str, str | None]]:
    context = LoadingContextForTest(project.instance)
    resolver = CachingStaleStatusResolver(project.instance, repository().asset_graph, context)
    nodes = [(asset, batch) for asset in BATCH_ASSETS for batch in ("a", "b")]
    nodes += [(asset, None) for asset in GLOBAL_ASSETS]
    return {node for node in nodes if resolver.get_status(dg.AssetKey(node[0]), node[1]) is not StaleStatus.FRESH}


@pytest.mark.long
def test_a_run_that_changes_nothing_keeps_all_versions(indexed):
    before = {asset: version(indexed, asset) for asset in GLOBAL_ASSETS}
    indexed.run_batch("a")
    indexed.run_global()
    assert {asset: version(indexed, asset) for asset in GLOBAL_ASSETS} == before


@pytest.mark.long
def test_an_edit_changes_the_versions_of_its_batch_alone(indexed):
    before = {batch: version(indexed, "entity_mentions", batch) for batch in ("a", "b")}
    entities = version(indexed, "entities")
    indexed.write("b/text.txt", "Robert Halpin sailed from Valentia with Daniel Gooch.")
    indexed.run("update_index")
    assert version(indexed, "entity_mentions", "a") == before["a"]
    assert version(indexed, "entity_mentions", "b") != before["b"]
    assert version(indexed, "entities") != entities


@pytest.mark.extended
def test_the_ui_shows_exactly_what_an_edit_concerns_as_unsynced(indexed):
    graph = repository().asset_graph
    for asset in (*BATCH_ASSETS, *GLOBAL_ASSETS):
        assert graph.get(dg.AssetKey(asset)).code_version, asset
        assert version(indexed, asset, "a" if asset in BATCH_ASSETS else None), asset
    indexed.register()
    assert unsynced(indexed) == set()
    indexed.write("b/text.txt", "Robert Halpin sailed from Valentia with Daniel Gooch.")
    indexed.register()
    assert {("documents", "b")} <= unsynced(indexed)
    assert not [node for node in unsynced(indexed) if node[1] == "a"]
    indexed.run_batch("b")
    assert not [node for node in unsynced(indexed) if node[1]]
    assert ("entities", None) in unsynced(indexed)
    indexed.run_global()
    assert unsynced(indexed) == set()
