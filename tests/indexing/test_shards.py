"""Reports and vectors made by many machines equal those of one process, even if a machine is killed."""

import json
import uuid
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.errors import StagingError
from graphrag_assets.extras.cluster.shards import EMBEDDINGS, REPORTS, make_shard, open_shards, shared
from graphrag_assets.indexing.communities import update_communities
from graphrag_assets.indexing.embeddings import update_embeddings
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import index_batch
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.models import existing_ledger
from graphrag_assets.indexing.reports import update_reports
from graphrag_assets.indexing.staged_batches import staging_of
from tests import openai_server
from tests.cluster.documents import write_crews

TABLES = ("community_reports", "citations", "embeddings")
UPDATES = {REPORTS: update_reports, EMBEDDINGS: update_embeddings}


@pytest.fixture
def committer(project, monkeypatch) -> Index:
    """An index of eight communities without reports and vectors, and a staging area."""
    write_crews(project.input, 8)
    monkeypatch.setenv("GRAPHRAG_STAGING", f"memory://{uuid.uuid4().hex}")
    monkeypatch.setattr("graphrag_assets.extras.cluster.shards.SHARD_SIZE", 2)
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:minilm")
    index_batch(project.index, "crews", project.index.models("crews"), "run")
    merge_graph(project.index, project.index.models(), "run")
    update_communities(project.index, "run")
    return project.index


@pytest.fixture
def worker(tmp_path: Path) -> Index:
    """A machine without a working database."""
    return Index(tmp_path / "worker" / "index" / "working.duckdb")


def alone(committer: Index, root: Path) -> dict[str, pl.DataFrame]:
    """The tables that one process makes from the same graph."""
    index = committer.on_copy(root / "alone" / "working.duckdb")
    index.database.parent.mkdir()
    committer.working.copy_to(index.database)
    for update in UPDATES.values():
        update(index, index.models(), "run")
    return tables(index)


def tables(index: Index) -> dict[str, pl.DataFrame]:
    return {name: index.working.read(f"FROM {name} ORDER BY ALL") for name in TABLES}


def update(index: Index, kind: str, models: IndexingModels | None = None, run_id: str = "refresh") -> None:
    with shared(index, models or index.models(run_id=run_id), kind, run_id) as sharing:
        UPDATES[kind](index, sharing, run_id)


def ending(index: Index, after: int) -> IndexingModels:
    """Models of a process that is killed after so many shards."""
    models, calls = index.models(run_id="refresh"), list[int]()

    def end(make):
        def made(items):
            calls.append(len(items))
            if len(calls) > after:
                raise KeyboardInterrupt
            return make(items)

        return made

    return replace(models, write_reports=end(models.write_reports), embed=end(models.embed))


@pytest.mark.parametrize("kind", [REPORTS, EMBEDDINGS])
def test_what_all_machines_make_is_what_one_process_makes(committer, worker, tmp_path, kind):
    expected = alone(committer, tmp_path)
    if kind == EMBEDDINGS:
        update_reports(committer, committer.models(), "run")
    with pytest.raises(KeyboardInterrupt):  # the committer is killed when it has made one shard
        update(committer, kind, ending(committer, after=1), "killed")
    waiting = open_shards(committer)
    assert len(waiting) >= 2
    assert make_shard(worker, waiting[0]) > 0  # the first ones are made elsewhere
    assert open_shards(committer) == waiting[1:]
    assert make_shard(worker, waiting[0]) == 0  # a run that was slower, or is launched again
    update(committer, kind, ending(committer, after=len(waiting) - 1))  # those that are left, and none again
    update(committer, EMBEDDINGS if kind == REPORTS else REPORTS)
    assert {name: frame.equals(expected[name]) for name, frame in tables(committer).items()} == dict.fromkeys(
        TABLES, True
    )
    assert expected["embeddings"].height > 2 * 3
    assert open_shards(committer) == []
    assert not worker.database.exists()


def test_few_items_are_not_shared(committer, monkeypatch):
    monkeypatch.setattr("graphrag_assets.extras.cluster.shards.SHARD_SIZE", 1000)
    with pytest.raises(KeyboardInterrupt):
        update(committer, REPORTS, ending(committer, after=0))
    assert open_shards(committer) == []


def test_a_machine_with_another_reporter_makes_nothing_and_names_both(committer, worker, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        update(committer, EMBEDDINGS, ending(committer, after=0))
    shard = open_shards(committer)[0]
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "openai/other")
    monkeypatch.setenv("GRAPHRAG_LEDGER_URL", f"sqlite:///{worker.database.with_name('ledger.db')}")
    with pytest.raises(StagingError, match=r"are to be made with onnx:minilm.*, and this machine has openai/other"):
        make_shard(worker, shard)
    assert shard in open_shards(committer)


def test_what_is_swept_from_the_staging_area_includes_shards(committer):
    with pytest.raises(KeyboardInterrupt):
        update(committer, EMBEDDINGS, ending(committer, after=0))
    staging_of(committer).sweep()  # as purge does
    assert staging_of(committer).files() == []


@pytest.mark.extended
def test_no_paid_call_is_repeated_and_the_bill_is_the_committers(committer, worker, monkeypatch):
    with openai_server.running() as server:
        for name, value in {
            "GRAPHRAG_CHAT_MODEL": "openai/test-model",
            "GRAPHRAG_CHAT_BASE_URL": server.url,
            "GRAPHRAG_CHAT_API_KEY": "none",
            "GRAPHRAG_METHOD": "fast",
            "GRAPHRAG_LEDGER_URL": f"sqlite:///{committer.database.with_name('ledger.db')}",
        }.items():
            monkeypatch.setenv(name, value)
        index = Index(committer.database)
        n_reports = index.working.read("SELECT count(*) FROM communities WHERE size > 2").item()
        with pytest.raises(KeyboardInterrupt):
            update(index, REPORTS, ending(index, after=1), "refresh")
        before = len(prompts_of(server))
        make_shard(worker, open_shards(index)[0])
        update(index, REPORTS)
        prompts = prompts_of(server)
    assert len(set(prompts)) == len(prompts) >= n_reports
    assert set(existing_ledger(index.settings).frame()["run_id"]) == {"refresh"}
    used = index.working.read("SELECT calls FROM index_runs WHERE stage = 'write_community_reports'").item()
    assert used == len(prompts) - before > 0  # those of the other machine, too


def prompts_of(server: openai_server.OpenAIServer) -> list[str]:
    return [json.dumps(request.body["messages"]) for request in server.requests if "messages" in request.body]
