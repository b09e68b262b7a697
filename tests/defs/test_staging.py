"""With a staging area, one run extracts a batch, on any machine, and another one commits it."""

import functools
import uuid
from dataclasses import replace

import dagster as dg
import pytest

from graphrag_assets.definitions import defs
from graphrag_assets.defs.automation import request_runs
from graphrag_assets.defs.index_names import IndexNames
from graphrag_assets.extras.cluster.jobs import shard_requests
from graphrag_assets.extras.cluster.shards import EMBEDDINGS, open_shards, shared
from graphrag_assets.indexing.staged_batches import staged_batches, staging_of
from graphrag_assets.store.staging import SHARDS
from tests.conftest import QUIET, Project

TEXT = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."


@functools.cache
def staged_repository() -> dg.RepositoryDefinition:
    """The code location with a staging area, loaded once; runs read the settings of their test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHRAG_STAGING", "memory://any")
        patch.setenv("GRAPHRAG_EXTRACT_TAGS", '{"dagster-k8s/config": {"pod_spec_config": {"volumes": []}}}')
        return defs().get_repository_def()


@pytest.fixture
def cluster(project, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_STAGING", f"memory://{uuid.uuid4().hex}")
    monkeypatch.setattr("graphrag_assets.indexing.scan.SETTLE_SECONDS", 0)
    project.write("a/text.txt", TEXT)
    project.write("b/text.txt", TEXT.replace("Field", "Canning"))
    return project


def run(project: Project, job: str, batch: str | None, ops: dict | None = None, **more) -> dg.ExecuteInProcessResult:
    """A run: one that extracts has a database of its own, as on another machine."""
    with pytest.MonkeyPatch.context() as patch:
        if job in ("extract_batches", "make_shards"):
            patch.setenv("GRAPHRAG_INPUT", str(project.input))
            patch.setenv("GRAPHRAG_DATA", str(project.root / "worker"))
        return (
            staged_repository()
            .get_job(job)
            .execute_in_process(
                instance=project.instance,
                partition_key=batch,
                run_config={**QUIET, "ops": ops or {}},
                **more,
            )
        )


def tick(project: Project) -> list[dg.RunRequest]:
    result = request_runs(IndexNames(), project.index, project.instance, [shard_requests])
    if isinstance(result, dg.SkipReason):
        return []
    for request in result.dynamic_partitions_requests or []:
        project.instance.add_dynamic_partitions("document_batches", list(request.partition_keys))
    return list(result.run_requests or [])


@pytest.mark.extended
def test_the_sensor_extracts_then_commits_then_refreshes(cluster):
    steps = []
    while requests := tick(cluster):
        steps.append([(request.job_name, request.partition_key) for request in requests])
        for request in requests:
            ops = request.run_config.get("ops")
            assert run(cluster, request.job_name, request.partition_key, ops, tags=dict(request.tags)).success
    assert steps == [
        [("extract_batches", "a"), ("extract_batches", "b")],
        [("index_batches", None)],  # a range
        [("refresh_graph", None)],
    ]
    assert staged_batches(cluster.index) == frozenset()
    assert not (cluster.root / "worker" / "index" / "working.duckdb").exists()
    assert {row[0] for row in cluster.sql("SELECT title FROM entities")} >= {"Cyrus Field", "Valentia"}


@pytest.mark.extended
def test_settings_given_to_a_batch_reach_the_machine_that_extracts_it(cluster):
    tick(cluster)
    given = {"index_batch": {"config": {"chunking": "SENTENCES", "chunk_size": 60}}}
    assert run(cluster, "index_batches", "a", given).success
    cluster.write("a/text.txt", TEXT + " It was laid in 1866.")
    (request,) = [request for request in tick(cluster) if request.partition_key == "a"]
    assert request.job_name == "extract_batches"
    config = request.run_config["ops"]["staged_batches"]["config"]
    assert (config["chunking"], config["chunk_size"]) == ("SENTENCES", 60)
    assert run(cluster, "extract_batches", "a", request.run_config["ops"]).success
    assert run(cluster, "index_batches", "a").success
    assert cluster.index.working.read("SELECT count(*) FROM text_units WHERE batch = 'a'").item() == 3


def test_shards_of_a_refresh_are_made_by_runs_on_any_machine(cluster, monkeypatch):
    monkeypatch.setattr("graphrag_assets.extras.cluster.shards.SHARD_SIZE", 2)
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:minilm")
    models = cluster.index.models()
    texts = ["one", "two", "three", "four", "five"]

    def killed(_: object) -> None:
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        shared(cluster.index, replace(models, embed=killed), EMBEDDINGS, "refresh") as sharing,
    ):
        sharing.embed(texts)
    requests = [request for request in tick(cluster) if request.job_name == "make_shards"]
    assert [request.run_key for request in requests] == open_shards(cluster.index)
    for request in requests:
        assert run(cluster, "make_shards", None, request.run_config["ops"]).success
    assert [request for request in tick(cluster) if request.job_name == "make_shards"] == []
    with shared(cluster.index, replace(models, embed=killed), EMBEDDINGS, "refresh") as sharing:
        assert (sharing.embed(texts) == models.embed(texts)).all()
    assert staging_of(cluster.index).names(SHARDS) == []


def test_only_tags_say_where_a_run_belongs():
    repository = staged_repository()
    tags = {job.name: dict(job.tags) for job in repository.get_all_jobs() if not job.name.startswith("__")}
    for job in ("extract_batches", "make_shards"):
        anywhere = tags.pop(job)
        assert anywhere["graphrag/queue"] == "extract"
        assert '"volumes": []' in anywhere["dagster-k8s/config"]
    assert {one.get("graphrag/queue") for one in tags.values()} == {"commit"}


def test_a_machine_that_extracts_cannot_leave_out_what_failed_before():
    config = {"ops": {"staged_batches": {"config": {"rerun": "NOTHING"}}}}
    with pytest.raises(dg.DagsterInvalidConfigError, match="NOTHING"):
        dg.validate_run_config(staged_repository().get_job("extract_batches"), config)
