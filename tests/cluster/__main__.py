"""`python -m tests.cluster`: a cluster on this machine, larger than in the tests, with everything that can happen to it.

Prints what was done and what came of it; status 1 if anything was lost, done twice, or beyond the limits.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests import openai_server
from tests.cluster import faults
from tests.cluster.documents import write_batches, write_crews
from tests.cluster.machines import running, wait_for


def without_faults(root: Path, batches: int) -> None:
    with running(root / "cluster", {}) as cluster:
        write_batches(cluster.input, batches)
        cluster.start(workers=2)
        seconds = published(cluster, batches)
        differing = faults.differences_to_one_process(cluster, root / "alone", {})
        report(f"{batches} batches, 2 workers", f"published after {seconds:.0f} s", f"rows that differ: {differing}")
        assert not differing


def with_faults(root: Path, batches: int) -> None:
    with running(root / "cluster", {}) as cluster, openai_server.running(host=cluster.address, latency=1.0) as server:
        write_batches(cluster.input, batches)
        began = time.monotonic()
        faults.all_of_them(cluster, server, batches)
        seconds = time.monotonic() - began
        failed = {job: cluster.runs(job, "FAILURE") for job in ("extract_batches", "index_batches", "refresh_graph")}
        repeated, paid = faults.repeated(server), len(server.requests)
        ledger = {"GRAPHRAG_LEDGER_URL": cluster.environment["GRAPHRAG_LEDGER_URL"]}
        differing = faults.differences_to_one_process(cluster, root / "alone", faults.model_settings(server) | ledger)
        what = "worker killed, network cut 60 s, committer killed, batch given out twice, clock 5 min ahead"
        report(f"{batches} batches, {what}", f"published after {seconds:.0f} s", f"rows that differ: {differing}")
        report("  failed runs, each repeated", str(failed))
        report("  requests", f"{paid}, repeated {repeated} (in flight at kills: at most {2 * faults.IN_FLIGHT})")
        report("  requests of one process after it", str(len(server.requests) - paid))
        assert not differing
        assert repeated <= 2 * faults.IN_FLIGHT
        assert len(server.requests) == paid


def queued(root: Path, batches: int) -> None:
    with running(root / "cluster", {}) as cluster:
        write_batches(cluster.input, batches, documents=1, sentences=5)
        cluster.start(workers=2)
        most, seconds = faults.most_at_once(cluster, batches)
        locked = cluster.logged("locked")
        failed = {job: cluster.runs(job, "FAILURE") for job in most}
        report(f"{batches} batches queued", f"published after {seconds:.0f} s", f"at once: {most}")
        report("  failed runs, lines about locks", f"{failed}, {len(locked)}")
        assert most["extract_batches"] <= 2
        assert most["index_batches"] <= 1
        assert not any(failed.values())
        assert not locked


def shared(root: Path, crews: int) -> None:
    """Reports of one refresh, made by all machines, of which one is killed meanwhile."""
    with running(root / "cluster", {}) as cluster, openai_server.running(host=cluster.address) as server:
        write_crews(cluster.input, crews)
        models = faults.model_settings(server) | {"GRAPHRAG_METHOD": "fast"}
        cluster.environment |= models
        server.latency = 3.0  # so that a shard takes longer than the 15 s between two looks of the sensor
        cluster.start(workers=2)
        faults.kill_a_worker_while_it_makes_a_shard(cluster)
        seconds = published(cluster, 1)
        made, n_repeated, paid = cluster.runs("make_shards", "SUCCESS"), faults.repeated(server), len(server.requests)
        ledger = {"GRAPHRAG_LEDGER_URL": cluster.environment["GRAPHRAG_LEDGER_URL"]}
        differing = faults.differences_to_one_process(cluster, root / "alone", models | ledger)
        report(
            f"{crews} reports in shards, a worker killed",
            f"published after {seconds:.0f} s",
            f"{made} runs made shards",
        )
        report("  rows that differ", str(differing), f"requests {paid}, repeated {n_repeated}")
        report("  requests of one process after it", str(len(server.requests) - paid))
        assert not differing
        assert made
        assert n_repeated <= faults.IN_FLIGHT
        assert len(server.requests) == paid


def published(cluster: faults.Cluster, batches: int) -> float:
    began = time.monotonic()
    wait_for("the publication", lambda: cluster.published(batches), 1500)
    return time.monotonic() - began


def report(*words: str) -> None:
    print(" | ".join(words), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--queued", type=int, default=50)
    parser.add_argument("--part", dest="parts", action="append", choices=PARTS, help="Default: all.")
    given = parser.parse_args()
    sizes = {without_faults: given.batches, with_faults: given.batches, shared: 600, queued: given.queued}
    status = 0
    for name in given.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
            try:
                PARTS[name](Path(folder), sizes[PARTS[name]])
            except AssertionError as error:
                report(f"FAILED: {name}", str(error))
                status = 1
    return status


PARTS = {part.__name__: part for part in (without_faults, with_faults, shared, queued)}

if __name__ == "__main__":
    sys.exit(main())
