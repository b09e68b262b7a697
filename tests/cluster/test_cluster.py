"""Two workers make the index that one process makes. `python -m tests.cluster` adds all that can happen to them."""

import pytest

from tests.cluster import faults
from tests.cluster.documents import write_batches
from tests.cluster.machines import running, wait_for

pytestmark = pytest.mark.long


def test_two_workers_make_what_one_process_makes(tmp_path):
    with running(tmp_path / "cluster", {}) as cluster:
        write_batches(cluster.input, 4)
        cluster.start(workers=2)
        wait_for("the publication", lambda: cluster.published(4))
        assert cluster.runs("extract_batches", "SUCCESS") == 4
        assert 1 <= cluster.runs("index_batches", "SUCCESS") <= 4  # a run commits all that are staged
        check = cluster.machines["worker0"].start("graphrag-assets", "doctor", "cluster")
        assert check.wait(120) == 0, cluster.logged("missing")
        assert cluster.logged("2 workers for extract, 1 workers for commit")
        assert faults.differences_to_one_process(cluster, tmp_path / "alone", {}) == {}
        assert not any((cluster.root / f"worker{n}/index/working.duckdb").exists() for n in range(2))
