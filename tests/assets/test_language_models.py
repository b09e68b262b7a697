"""Indexing with language models: a real server that speaks the OpenAI protocol, with faults."""

import re
import shutil

import dagster as dg
import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.store import schema
from tests.cli import run_command
from tests.conftest import Project, build_once, default_settings
from tests.limits import limit_calls
from tests.openai_content import FILLER
from tests.openai_server import OpenAIServer, running

BATCHES = {
    "one/a.md": "Captain James Anderson commanded the Great Eastern. Cyrus Field sailed with Samuel Canning to Newfoundland."
    + FILLER,
    "one/b.md": "William Thomson invented the mirror galvanometer. Cyrus Field met William Thomson in Valentia."
    + FILLER,
    "two/c.md": "The Great Eastern reached Newfoundland. Robert Halpin and James Anderson were honoured in London."
    + FILLER,
}
TABLES = [table.name for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES)]


@pytest.fixture
def indexed(modeled, shared_folder):
    """The same, indexed: `server` has no requests yet."""
    return copy_index(modeled, shared_folder)


def copy_index(project, shared_folder):
    """Give the project the documents and a copy of their index, built once by the models of another server."""

    def build(root):
        with dg.DagsterInstance.ephemeral() as instance, pytest.MonkeyPatch.context() as patch, running() as server:
            default_settings(root, patch)
            use(patch, server)
            built = Project(root, instance)
            for path, text in BATCHES.items():
                built.write(path, text)
            built.index_all()

    shutil.copytree(build_once(shared_folder / "by-models", build), project.root, symlinks=True, dirs_exist_ok=True)
    project.instance.add_dynamic_partitions("document_batches", ["one", "two"])
    return project


def use(monkeypatch: pytest.MonkeyPatch, server: OpenAIServer) -> None:
    for kind in ("CHAT", "EMBEDDING"):
        monkeypatch.setenv(f"GRAPHRAG_{kind}_MODEL", f"openai/test-{kind.lower()}")
        monkeypatch.setenv(f"GRAPHRAG_{kind}_BASE_URL", server.url)
        monkeypatch.setenv(f"GRAPHRAG_{kind}_API_KEY", "sk-planted-secret")
    limit_calls(monkeypatch, backoff_seconds=0.01)


def contents(project):
    return {name: project.index.working.read(f"SELECT * FROM {name} ORDER BY ALL").to_dicts() for name in TABLES}


def is_gleaning_of(body):
    return "<listed" in str(body["messages"])


def test_wrong_key_fails_immediately_with_one_clear_error(modeled, server):
    server.api_key = "sk-other"
    modeled.register()
    result = modeled.run_batch("one", succeed=False)
    (failure,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    said = failure.user_failure_data.description
    assert re.fullmatch(r"openai/test-\w+ at \S+ cannot be called: HTTP 401: .* Check the API key .*", said)
    assert failure.error.message == f"dagster._core.definitions.events.Failure: {said}\n"  # what the UI shows first
    assert len(server.requests) <= 25
    assert modeled.index.working.read("SELECT count(*) FROM documents").item() == 0


def test_a_run_that_publishes_nothing_has_a_bill_and_its_calls_come_with_the_next_publication(indexed, monkeypatch):
    rag, spent = GraphRAG(), "SELECT sum(cost_usd) FROM llm_calls"
    assert rag.sql(spent).item() == 0
    monkeypatch.setenv("GRAPHRAG_USD_PER_MILLION", '{"chat_input": 1000, "chat_output": 1000}')
    monkeypatch.setenv("GRAPHRAG_BUDGET_USD", "4")
    for path, text in BATCHES.items():
        indexed.write(path, text + " Daniel Gooch sent the first message to the Queen.")
    printed = run_command("index", status=1)
    assert "Nothing was published" in " ".join(printed.split())
    assert billed(printed, "extract_all")[0] > 0
    assert rag.sql(spent).item() == 0
    monkeypatch.setenv("GRAPHRAG_BUDGET_USD", "4000")
    run_command("index")
    assert rag.sql(spent).item() > 4


@pytest.mark.extended
def test_a_budget_that_ends_in_a_global_stage_publishes_nothing_until_it_is_raised(modeled, server, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_METHOD", "fast")  # the first calls are those of the reports
    monkeypatch.setenv("GRAPHRAG_USD_PER_MILLION", '{"chat_input": 1000, "chat_output": 1000}')
    monkeypatch.setenv("GRAPHRAG_BUDGET_USD", "1")
    printed = " ".join(run_command("index", status=1).split())
    assert "Batches: 2 indexed" in printed
    assert "Failed: graph, communities, reports, embeddings, publication: " in printed
    assert "GRAPHRAG_BUDGET_USD" in printed
    assert not (modeled.root / "index" / "graphrag.duckdb").exists()
    monkeypatch.setenv("GRAPHRAG_BUDGET_USD", "4000")
    run_command("index")
    assert (modeled.root / "index" / "graphrag.duckdb").exists()


def billed(printed: str, task: str) -> tuple[int, int]:
    """Answers of a task that were paid for, and those from the ledger, as `index` prints them."""
    (line,) = [line for line in printed.splitlines() if line.startswith(f"│ {task} ")]
    paid, known = (int(cell.replace(",", "")) for cell in line.split("│")[2:4])
    return paid, known


def test_questions_are_embedded_and_answered_by_the_models_of_the_index(indexed, server, monkeypatch):
    from graphrag_assets.errors import QueryError
    from graphrag_assets.query import GraphRAG

    answer = GraphRAG().local("Who commanded the Great Eastern?")
    assert answer.model == "openai/test-chat"
    assert len(server.requests) == 2  # one embedding, one answer
    monkeypatch.delenv("GRAPHRAG_EMBEDDING_MODEL")
    with pytest.raises(QueryError, match="openai/test-embedding"):
        GraphRAG().local("Who commanded the Great Eastern?")
