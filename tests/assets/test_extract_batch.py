"""Any machine asks the models about a batch; the machine with the index finds the answers in the shared ledger."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from graphrag_assets.assets.index import Index
from graphrag_assets.contracts.prompt_profile import ProfileType, PromptProfile
from graphrag_assets.definitions import defs
from graphrag_assets.store.prompt_profiles import adopt, record_profile
from tests.conftest import QUIET, IndexFolder, Project
from tests.model_index import ModelIndex, differences
from tests.openai_server import OpenAIServer, running
from tests.postgres import cluster

WORKER = """
import json, sys
import dagster as dg
from graphrag_assets.definitions import defs
job = defs().get_repository_def().get_job("extract_batch")
with dg.DagsterInstance.ephemeral() as instance:
    for batch, config in json.load(sys.stdin).items():
        instance.add_dynamic_partitions("document_batches", [batch])
        assert job.execute_in_process(instance=instance, partition_key=batch, run_config=config).success
"""
PROFILE = PromptProfile(
    domain="telegraphy",
    persona="You are a historian of telegraphy.",
    entity_types=(ProfileType("SHIP", 3, "a vessel"),),
).identified()
BATCHES = ("a", "b", "c")


def extraction_job() -> dg.JobDefinition:
    """The job as the present settings define it."""
    return defs().get_repository_def().get_job("extract_batch")


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    with running() as server:
        yield server


@pytest.fixture
def documents(project: Project) -> Project:
    for number, batch in enumerate(BATCHES):
        text = f"Cyrus Field met William Thomson in Valentia in 185{number}. The Agamemnon carried the cable of 186{number}."
        project.write(
            f"{batch}/one.md", f"# Voyage {number}\n\n{text}\n\n" + f"Robert Halpin sailed on day {number}. " * 40
        )
        project.write(f"{batch}/two.txt", text.replace("Field", "Canning"))
    return project


def made_at(root: Path, documents: Project, server: OpenAIServer, ledger: str) -> ModelIndex:
    """An index of the documents by models that write claims and a gleaning."""
    more = {
        "LEDGER_URL": ledger,
        "METHOD": "standard",
        "CLAIMS": "model",
        "MAX_GLEANINGS": "1",
        "CHUNK_SIZE": "200",
        "GATE": "off",
    }
    made = ModelIndex(root, server.url, documents.input, more)
    working = Index(root / "index" / "working.duckdb").working
    version = record_profile(working, PROFILE, model="test", sample_ids=[], calls=0, cost_usd=0.0)
    adopt(working, version)
    return made


@pytest.mark.extended
def test_two_workers_fill_the_ledger_and_indexing_asks_nothing_about_a_batch(
    documents: Project, openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg", reason="the driver psycopg is not installed")
    with cluster() as home:
        shared = f"postgresql+psycopg://postgres@/postgres?host={home}"
        writer = made_at(tmp_path / "writer", documents, openai_server, shared)
        for name, value in writer.environment.items():
            monkeypatch.setenv(name, value)
        configs = {batch: extraction_job().get_run_config_for_partition_key(batch) for batch in BATCHES}
        workers = []
        for number, own in enumerate((BATCHES[:2], BATCHES[2:])):
            worker = subprocess.Popen(
                [sys.executable, "-c", WORKER],
                env={**writer.environment, "GRAPHRAG_DATA": str(tmp_path / f"worker{number}")},
                stdin=subprocess.PIPE,
                text=True,
            )
            worker.stdin.write(json.dumps({batch: configs[batch] for batch in own}))
            worker.stdin.close()
            workers.append(worker)
        assert [worker.wait(300) for worker in workers] == [0, 0]
        assert not list(tmp_path.glob("worker*/**/*.duckdb"))
        of_batches = ("ExtractGraphWithClaims", "ExtractGraphsWithClaims")  # the latter on short text units together
        paid = [request for request in openai_server.chats if request.task in of_batches]
        assert len(paid) >= len(BATCHES)
        openai_server.requests.clear()
        IndexFolder(writer.folder).index_all()
        assert [request for request in openai_server.chats if request.task in of_batches] == []
        alone = made_at(tmp_path / "alone", documents, openai_server, "")
        for name, value in alone.environment.items():
            monkeypatch.setenv(name, value)
        IndexFolder(alone.folder).index_all()
        assert len([request for request in openai_server.chats if request.task in of_batches]) == len(paid)
        ours, theirs = writer.tables(), alone.tables()
        del ours["prompt_profile"], theirs["prompt_profile"]  # made at another time
        assert differences(ours, theirs) == []


@pytest.fixture
def machines(
    documents: Project, openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """The project as the machine with the index, with a ledger that others share."""
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/test-model")
    monkeypatch.setenv("GRAPHRAG_CHAT_BASE_URL", openai_server.url)
    monkeypatch.setenv("GRAPHRAG_LEDGER_URL", f"sqlite:///{tmp_path}/shared.sqlite")
    documents.register()
    return documents


def extract(machines: Project, config: dict, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """A run of batch a on another machine, with the settings of this one but for those given."""
    with monkeypatch.context() as patch:
        patch.setenv("GRAPHRAG_INPUT", str(machines.input))
        patch.setenv("GRAPHRAG_DATA", str(machines.root / "elsewhere"))
        for name, value in settings.items():
            patch.setenv(f"GRAPHRAG_{name}", value)
        extraction_job().execute_in_process(
            instance=machines.instance, partition_key="a", run_config={**QUIET, **config}
        )


def test_a_machine_with_other_settings_or_documents_pays_nothing(machines, openai_server, monkeypatch):
    config = extraction_job().get_run_config_for_partition_key("a")
    with pytest.raises(dg.Failure, match=r"chunk_size: 2600 there, 800 here; extractor.*Give all machines the same"):
        extract(machines, config, monkeypatch, CHUNK_SIZE="800", MAX_GLEANINGS="2")
    with pytest.raises(dg.Failure, match="has no batch 'a' on this machine"):
        extract(machines, config, monkeypatch, INPUT=str(machines.root))
    assert openai_server.requests == []
