"""What the UI calls unsynced: after a run nothing is, whichever way the batches were indexed."""

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from graphrag_assets.assets.index_names import BATCH_ASSETS, GLOBAL_ASSETS
from tests.conftest import Project, repository

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."


def version(project: Project, asset: str) -> str:
    event = project.instance.get_latest_materialization_event(dg.AssetKey(asset))
    return event.asset_materialization.tags["dagster/data_version"]


def unsynced(project: Project) -> set[tuple[str, str | None]]:
    context = LoadingContextForTest(project.instance)
    resolver = CachingStaleStatusResolver(project.instance, repository().asset_graph, context)
    nodes = [(asset, batch) for asset in BATCH_ASSETS for batch in ("a", "b")]
    nodes += [(asset, None) for asset in GLOBAL_ASSETS]
    return {node for node in nodes if resolver.get_status(dg.AssetKey(node[0]), node[1]) is not StaleStatus.FRESH}


@pytest.mark.extended
def test_after_runs_of_batches_and_of_the_job_nothing_is_unsynced(project: Project) -> None:
    project.write("a/text.txt", TEXT)
    project.write("b/text.txt", TEXT.replace("Field", "Canning"))
    project.run("update_index")
    assert unsynced(project) == set()
    before = {asset: version(project, asset) for asset in GLOBAL_ASSETS}
    project.run_all()
    assert {asset: version(project, asset) for asset in GLOBAL_ASSETS if asset != "batch_state"} == {
        asset: version for asset, version in before.items() if asset != "batch_state"
    }
    assert unsynced(project) == set()
    project.write("b/text.txt", "Robert Halpin sailed from Valentia with Daniel Gooch.")
    project.run("update_index")
    assert version(project, "entities") != before["entities"]
    assert unsynced(project) == set()
    (project.input / "b/text.txt").unlink()
    (project.input / "b").rmdir()
    project.run("update_index")
    assert project.instance.get_dynamic_partitions("document_batches") == ["a"]
    assert project.sql("SELECT DISTINCT batch FROM documents") == [("a",)]
