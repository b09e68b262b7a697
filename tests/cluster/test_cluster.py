"""Many machines make the index that one process makes, whatever ends or is cut off meanwhile."""

import pytest

from tests import openai_server
from tests.cluster import faults
from tests.cluster.documents import write_batches
from tests.cluster.machines import TABLES, running, wait_for

pytestmark = pytest.mark.extended
SAME = dict.fromkeys(TABLES, 0)


def test_two_workers_make_what_one_process_makes(tmp_path):
    with running(tmp_path / "cluster", {}) as cluster:
        write_batches(cluster.input, 4)
        cluster.start(workers=2)
        wait_for("the publication", lambda: cluster.published(4))
        assert cluster.runs("extract_batches", "SUCCESS") == cluster.runs("index_batches", "SUCCESS") == 4
        check = cluster.machines["worker0"].start("graphrag-assets", "cluster-check")
        assert check.wait(120) == 0, cluster.logged("missing")
        assert cluster.logged("2 workers for extract, 1 workers for commit")
        assert faults.differences_to_one_process(cluster, tmp_path / "alone", {}) == SAME
        assert not any((cluster.root / f"worker{n}/index/working.duckdb").exists() for n in range(2))


def test_machines_that_end_or_are_cut_off_lose_nothing_and_nothing_is_paid_for_twice(tmp_path):
    with (
        running(tmp_path / "cluster", {}) as cluster,
        openai_server.running(host=cluster.address, latency=1.0) as server,
    ):
        write_batches(cluster.input, 4)
        faults.all_of_them(cluster, server, 4, cut_seconds=20)
        assert cluster.runs("extract_batches", "FAILURE") > 0  # those of the worker that was killed
        assert faults.repeated(server) <= 2 * faults.IN_FLIGHT  # of the killed worker, and of the one that was cut off
        paid = len(server.requests)
        ledger = {"GRAPHRAG_LEDGER_URL": cluster.environment["GRAPHRAG_LEDGER_URL"]}
        settings = faults.model_settings(server) | ledger
        assert faults.differences_to_one_process(cluster, tmp_path / "alone", settings) == SAME
        assert len(server.requests) == paid  # every answer was in the ledger


def test_what_waits_keeps_to_the_limits(tmp_path):
    with running(tmp_path / "cluster", {}) as cluster:
        write_batches(cluster.input, 10, documents=1, sentences=5)
        cluster.start(workers=2)
        most, _ = faults.most_at_once(cluster, 10)
        assert most["extract_batches"] <= 2
        assert most["index_batches"] <= 1
        assert not any(cluster.runs(job, "FAILURE") for job in most)
        assert cluster.logged("locked") == []
