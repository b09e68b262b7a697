"""Many machines make the index that one process makes, whatever ends or is cut off meanwhile."""

import pytest

from tests import openai_server
from tests.cluster import faults
from tests.cluster.documents import write_batches
from tests.cluster.machines import running, wait_for

pytestmark = pytest.mark.extended


def test_two_workers_make_what_one_process_makes(tmp_path):
    with running(tmp_path / "cluster", {}) as cluster:
        write_batches(cluster.input, 4)
        cluster.start(workers=2)
        faults.assert_same_as_one_process(cluster, tmp_path / "alone", 4, {})
        assert not any((cluster.root / f"worker{n}/index/working.duckdb").exists() for n in range(2))


def test_machines_that_end_or_are_cut_off_lose_nothing_and_nothing_is_paid_for_twice(tmp_path):
    with (
        running(tmp_path / "cluster", {}) as cluster,
        openai_server.running(host=cluster.address, latency=1.0) as server,
    ):
        write_batches(cluster.input, 4)
        faults.all_of_them(cluster, server, 4, cut_seconds=20)
        kills = 2  # a worker, and the process that extracted a batch for the second time
        assert faults.repeated(server) <= faults.IN_FLIGHT * kills
        paid = len(server.requests)
        settings = faults.model_settings(server) | {
            "GRAPHRAG_LEDGER_URL": cluster.environment["GRAPHRAG_LEDGER_URL"],
        }
        faults.assert_same_as_one_process(cluster, tmp_path / "alone", 4, settings)
        assert len(server.requests) == paid  # every answer was in the ledger


def test_what_waits_keeps_to_the_limits(tmp_path):
    with running(tmp_path / "cluster", {}) as cluster:
        write_batches(cluster.input, 10, documents=1, sentences=5)
        cluster.start(workers=2)
        most = {"extract_batches": 0, "index_batches": 0}

        def finished() -> bool:
            for job in most:
                most[job] = max(most[job], cluster.runs(job, "STARTED"))
            return cluster.published(10)

        wait_for("the publication", finished, 600)
        assert most["extract_batches"] <= 2
        assert most["index_batches"] <= 1
        assert not any(cluster.runs(job, "FAILURE") for job in (*most, "refresh_graph"))
        assert cluster.logged("locked") == []
