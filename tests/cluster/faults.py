"""What happens to a cluster while it extracts: machines end, networks are cut, batches are given out twice."""

import json
import time
from collections import Counter
from pathlib import Path

from tests.cluster.equality import differences, index_in_one_process
from tests.cluster.machines import Cluster, Machine, wait_for
from tests.openai_server import OpenAIServer

IN_FLIGHT = 4
"""Model calls that a machine has under way at most."""
CUT_SECONDS = 60
_QUESTION_WHETHER_IT_IS_READY = 1000  # each run asks it again; it is shorter than any prompt
_TWICE = """
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.staged_batches import stage_batch
index = Index.from_environment()
stage_batch(index, {batch!r}, index.models({batch!r}, "twice"), "twice")
"""


def model_settings(server: OpenAIServer) -> dict[str, str]:
    """Settings by which the machines extract with the models of the server."""
    return {
        "GRAPHRAG_CHAT_MODEL": "openai/test-model",
        "GRAPHRAG_CHAT_BASE_URL": server.url,
        "GRAPHRAG_CHAT_API_KEY": "none",
        "GRAPHRAG_METHOD": "standard",
        "GRAPHRAG_CONCURRENCY": str(IN_FLIGHT),
        "GRAPHRAG_CHUNK_SIZE": "400",
    }


def give_out_twice(machine: Machine, batch: str) -> None:
    """Let a process extract a batch that another machine extracts, too."""
    machine.start("python", "-c", _TWICE.format(batch=batch))


def wait_until_it_extracts(machine: Machine, server: OpenAIServer) -> None:
    """Wait until a machine is in the middle of a batch."""
    wait_for(f"an extraction by {machine.name}", lambda: machine.n_logged("received") > machine.n_logged("succeeded"))
    before = len(server.requests)
    wait_for("requests of an extraction", lambda: len(server.requests) > before + 2 * IN_FLIGHT)


def kill_a_worker_while_it_extracts(machine: Machine, server: OpenAIServer) -> None:
    wait_until_it_extracts(machine, server)
    machine.kill()
    machine.work("extract")


def kill_a_worker_while_it_makes_a_shard(cluster: Cluster) -> None:
    workers = [machine for name, machine in cluster.machines.items() if name != "committer"]

    def busy() -> Machine | None:
        return next((one for one in workers if one.n_logged("make_shards - ")), None)

    machine = wait_for("a shard", busy)
    assert isinstance(machine, Machine)
    machine.kill()
    machine.work("extract")


def cut_the_network_while_it_extracts(machine: Machine, server: OpenAIServer, seconds: float = CUT_SECONDS) -> None:
    if machine.namespace:
        wait_until_it_extracts(machine, server)
        machine.connected(False)
        time.sleep(seconds)
        machine.connected(True)


def kill_the_committer_between_manifest_and_commit(cluster: Cluster) -> None:
    machine = cluster.machines["committer"]
    wait_for("a manifest", cluster.staged)
    machine.kill()
    assert cluster.staged()
    machine.work("commit")
    cluster.daemon(machine)


def differences_to_one_process(cluster: Cluster, root: Path, settings: dict[str, str]) -> dict[str, int]:
    """By table: rows that only the cluster or only one process has. The cluster is stopped."""
    assert cluster.staged() == []
    cluster.stop_machines()
    alone = index_in_one_process(cluster.database, cluster.input, root, settings)
    return differences(cluster.database.parent, alone)


def most_at_once(cluster: Cluster, batches: int) -> tuple[dict[str, int], float]:
    """How many runs of each job were started at once until all was published, and the seconds that took."""
    most, began = {"extract_batches": 0, "index_batches": 0, "refresh_graph": 0}, time.monotonic()

    def finished() -> bool:
        for job in most:
            most[job] = max(most[job], cluster.runs(job, "STARTED"))
        return cluster.published(batches)

    wait_for("the publication", finished, 1500)
    return most, time.monotonic() - began


def repeated(server: OpenAIServer) -> int:
    """Requests of extractions that were sent before."""
    prompts = (json.dumps(request.body["messages"]) for request in server.requests if "messages" in request.body)
    asked = Counter(prompt for prompt in prompts if len(prompt) > _QUESTION_WHETHER_IT_IS_READY)
    assert asked
    return sum(asked.values()) - len(asked)


def all_of_them(cluster: Cluster, server: OpenAIServer, batches: int, cut_seconds: float = CUT_SECONDS) -> None:
    """Each of them, one after another, while `batches` are extracted; returns when all is published."""
    cluster.environment |= model_settings(server)
    cluster.start(workers=2, clock="+5m")
    first, second = cluster.machines["worker0"], cluster.machines["worker1"]
    give_out_twice(cluster.machine("worker2"), "batch-000")
    kill_a_worker_while_it_extracts(first, server)
    cut_the_network_while_it_extracts(second, server, cut_seconds)
    kill_the_committer_between_manifest_and_commit(cluster)
    wait_for("the publication", lambda: cluster.published(batches), 1500)
