"""Many machines make the index that one process makes, whatever ends or is cut off meanwhile."""

from pathlib import Path

import pytest

from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import index_batch
from tests.cluster.documents import write_batches
from tests.cluster.machines import Cluster, differences, running, wait_for
from tests.conftest import default_settings

pytestmark = pytest.mark.extended


def in_one_process(cluster: Cluster, root: Path) -> Path:
    """The working database of the same folder, made by one process without a staging area."""
    with pytest.MonkeyPatch.context() as patch:
        default_settings(root, patch)
        patch.setenv("GRAPHRAG_INPUT", str(cluster.input))
        index = Index.from_environment()
        for batch in index.input_folder.batches():
            index_batch(index, batch, index.models(batch), "one")
        return index.database


def assert_same_as_one_process(cluster: Cluster, root: Path, batches: int) -> None:
    wait_for("the publication", lambda: cluster.published(batches))
    cluster.stop()
    assert set(differences(cluster.database, in_one_process(cluster, root)).values()) == {0}
    assert cluster.staged() == []


def test_two_workers_make_what_one_process_makes(tmp_path):
    with running(tmp_path / "cluster", {}) as cluster:
        write_batches(cluster.input, 4)
        cluster.start(workers=2)
        assert_same_as_one_process(cluster, tmp_path / "alone", 4)
        assert cluster.runs("extract_batches", "SUCCESS") == cluster.runs("index_batches", "SUCCESS") == 4
        assert not any((cluster.root / f"worker{n}/index/working.duckdb").exists() for n in range(2))
