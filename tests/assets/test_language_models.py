"""Indexing with language models: a real server that speaks the OpenAI protocol, with faults."""

import hashlib
import re
import shutil

import dagster as dg
import pytest

from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.scan import scan_input
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
MANY = {
    f"{name}/ship.md": f"Captain {name.title()} Anderson commanded the {name.title()} Eastern. {name.title()} Field "
    f"sailed with Samuel Canning to {name.title()} Valentia. Robert Halpin met {name.title()} Field in London.{FILLER}"
    for name in ("john", "james", "henry", "william", "george", "edward")
}
TABLES = [table.name for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES)]


@pytest.fixture
def indexed(modeled, shared_folder):
    """The same, indexed: `server` has no requests yet."""
    return copy_index(modeled, shared_folder)


def copy_index(project, shared_folder, documents=BATCHES, **settings):
    """Give the project documents and a copy of their index, built once by the models of another server."""

    def build(root):
        with dg.DagsterInstance.ephemeral() as instance:
            index_by_models(Project(root, instance), Project.index_all, documents, **settings)

    name = hashlib.sha256(repr((documents, settings)).encode()).hexdigest()[:16]
    built = build_once(shared_folder / f"by-models-{name}", build)
    shutil.copytree(built, project.root, symlinks=True, dirs_exist_ok=True)
    batches = sorted({path.partition("/")[0] for path in documents})
    project.instance.add_dynamic_partitions("document_batches", batches)
    return project


@pytest.fixture
def dagster_index(shared_folder):
    """The index of BATCHES by Dagster runs with the models of a server that has ended. For reading."""

    def build(root):
        with dg.DagsterInstance.local_temp(str(root)) as instance:
            index_by_models(Project(root, instance), Project.run_all)

    root = build_once(shared_folder / "by-models-and-dagster", build)
    with dg.DagsterInstance.local_temp(str(root)) as instance:
        yield Project(root, instance)


def index_by_models(project, index, documents=BATCHES, **settings):
    with pytest.MonkeyPatch.context() as patch, running() as server:
        default_settings(project.root, patch)
        use(patch, server)
        for name, value in settings.items():
            patch.setenv(f"GRAPHRAG_{name.upper()}", value)
        for path, text in documents.items():
            project.write(path, text)
        index(project)


def use(monkeypatch: pytest.MonkeyPatch, server: OpenAIServer) -> None:
    for kind in ("CHAT", "EMBEDDING"):
        monkeypatch.setenv(f"GRAPHRAG_{kind}_MODEL", f"openai/test-{kind.lower()}")
        monkeypatch.setenv(f"GRAPHRAG_{kind}_BASE_URL", server.url)
        monkeypatch.setenv(f"GRAPHRAG_{kind}_API_KEY", "sk-planted-secret")
    limit_calls(monkeypatch, backoff_seconds=0.01)


def contents(project):
    return {name: project.index.working.read(f"SELECT * FROM {name} ORDER BY ALL").to_dicts() for name in TABLES}


@pytest.mark.extended
def test_every_stage_is_made_by_the_models(dagster_index):
    tasks = {task for (task,) in dagster_index.sql("SELECT DISTINCT task FROM llm_calls")}
    assert tasks >= {"extract_all", "extract_all_continue", "community_report"}
    extractors = dagster_index.sql("SELECT DISTINCT split_part(extractor, '#', 1) FROM entity_mentions")
    assert extractors == [("openai/test-chat",)]
    assert dagster_index.sql("SELECT DISTINCT model FROM embeddings") == [("openai/test-embedding",)]
    assert dagster_index.sql("SELECT count(*) FROM entities")[0][0] > 0
    assert dagster_index.sql("SELECT count(*) FROM index_errors") == [(0,)]


@pytest.mark.extended
def test_lost_database_is_rebuilt_from_the_ledger_without_a_request(indexed, server):
    tables = contents(indexed)
    (indexed.root / "index" / "working.duckdb").unlink()
    indexed.index_all()
    assert server.requests == []
    assert contents(indexed) == tables


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
    assert "nothing was published" in " ".join(printed.split())
    assert billed(printed, "extract_all")[0] > 0
    assert rag.sql(spent).item() == 0
    monkeypatch.setenv("GRAPHRAG_BUDGET_USD", "4000")
    run_command("index")
    assert rag.sql(spent).item() > 4


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


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "summary_min_tokens", "budget"),
    [("Summaries", "0", "3"), ("CommunityReport", "500", "3")],
)
def test_nothing_is_published_when_the_budget_ends_in_a_global_stage(
    modeled, server, shared_folder, monkeypatch, task, summary_min_tokens, budget
):
    project = copy_index(modeled, shared_folder, MANY)
    tables = ("documents", "entities", "relationships", "community_reports")
    published = {name: project.sql(f"FROM {name} ORDER BY ALL") for name in tables}
    monkeypatch.setattr("graphrag_assets.assets.model_tasks.SUMMARY_MIN_TOKENS", int(summary_min_tokens))
    for path, text in MANY.items():
        project.write(path, text + " Daniel Gooch sent the first message to the Queen.")
    extract_changed(project)  # their calls are free
    monkeypatch.setenv("GRAPHRAG_USD_PER_MILLION", '{"chat_input": 1000, "chat_output": 1000}')
    monkeypatch.setenv("GRAPHRAG_BUDGET_USD", budget)
    monkeypatch.setenv("GRAPHRAG_CONCURRENCY", "1")  # calls in flight may pass the budget
    server.requests.clear()
    printed = " ".join(run_command("index", status=1).split())
    assert f"the budget of ${budget}.00 is used up" in printed
    answered = list(server.chats)
    assert answered  # it ended among them
    assert {request.task for request in answered} == {task}
    assert {name: project.sql(f"FROM {name} ORDER BY ALL") for name in tables} == published
    monkeypatch.delenv("GRAPHRAG_BUDGET_USD")
    run_command("index")
    assert project.sql("SELECT count(*) FROM documents WHERE text LIKE '%Gooch%'") == [(len(MANY),)]
    sent = [str(request.body) for request in server.chats]
    assert len(sent) == len(set(sent)) > len(answered)  # no answer was paid for twice


def extract_changed(project):
    for batch in scan_input(project.index).due:
        index, run_id = project.index, "extraction"
        index_batch(index, batch, index.models(batch, run_id), run_id)
