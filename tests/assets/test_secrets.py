"""Planted secrets: whatever a run does with its keys, they are afterwards nowhere below the data folder."""

import re
import sqlite3

import dagster as dg
import duckdb
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap

from graphrag_assets.assets.index import Index
from graphrag_assets.contracts.indexing_models import Keys
from graphrag_assets.definitions import defs
from graphrag_assets.query import GraphRAG
from graphrag_assets.settings import Settings
from tests.assets.test_language_models import use
from tests.conftest import Project
from tests.openai_content import content_for
from tests.openai_server import running

CHAT_KEY, EMBEDDING_KEY = "plantedchatsecret/0123456789", "plantedembeddingsecret+0123456789"
TEXT = "Captain James Anderson commanded the Great Eastern. Cyrus Field sailed with Samuel Canning to Newfoundland."


@pytest.fixture
def recorded(project, monkeypatch):
    """A project with a language model and both keys, whose runs, logs and outputs Dagster keeps below the data folder."""
    home = project.root / "dagster"
    home.mkdir()
    loggers = "python_logs: {managed_python_loggers: [graphrag_assets], python_log_level: INFO}\n"
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n" + loggers)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with running() as server, dg.DagsterInstance.get() as instance:
        use(monkeypatch, server)
        monkeypatch.setenv("OPENAI_API_KEY", CHAT_KEY)  # the provider's own variable
        monkeypatch.delenv("GRAPHRAG_CHAT_API_KEY", raising=False)
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_API_KEY", EMBEDDING_KEY)
        yield Project(project.root, instance), server


def everything(project: Project) -> dict[str, str]:
    """All there is below the data folder, by file: bytes, and values of databases, which may be compressed there."""
    found = {}
    for file in (file for file in project.root.rglob("*") if file.is_file() and not file.is_symlink()):
        found[str(file.relative_to(project.root))] = file.read_bytes().decode("latin-1")
        if file.suffix == ".duckdb":
            with duckdb.connect(str(file), read_only=True) as connection:
                tables = connection.execute(
                    "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT internal"
                ).fetchall()
                for (table,) in tables:
                    rows = connection.execute(f"SELECT string_agg(t::VARCHAR, chr(10)) FROM {table} t").fetchone()
                    found[f"{file.name}: {table.removeprefix('main.')}"] = str(rows)
        if file.suffix in (".sqlite", ".db"):
            with sqlite3.connect(file) as connection:
                found[f"{file.name}: rows"] = "\n".join(connection.iterdump())
    return found


@pytest.mark.extended
def test_planted_secrets_are_found_nowhere(recorded, capfd, caplog):
    project, server = recorded
    caplog.set_level("INFO")
    project.write("one/a.md", TEXT)
    server.fail_next("500", "429", "closed", "malformed-body", "malformed-content")
    project.run_all()
    with running(api_key="sk-another") as refusing, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHRAG_CHAT_BASE_URL", refusing.url)
        project.write("two/b.md", "William Thomson invented the mirror galvanometer.")
        refused = project.run("update_index", succeed=False)
    assert "401" in str(project.instance.all_logs(refused.run_id))
    project.index_all()
    GraphRAG(project.root / "index").local("Who commanded the Great Eastern?")
    places = everything(project) | {"printed": "".join(capfd.readouterr()), "logged": caplog.text}
    assert any("extract_all" in content for content in places.values())
    assert {"ledger.sqlite: rows", "working.duckdb: index_errors"} <= set(places)
    assert any(place.startswith("dagster/") for place in places)
    secret = re.compile("plantedchatsecret|plantedembeddingsecret")
    assert [place for place, content in places.items() if secret.search(content)] == []


@pytest.mark.long
def test_a_key_that_a_server_writes_into_valid_answers_is_masked(recorded):
    project, server = recorded
    server.content = lambda body: content_for(body).replace(" the ", f" the {CHAT_KEY} ")
    project.write("one/a.md", TEXT)
    project.index_all()
    for table, column in (("entity_mentions", "description"), ("community_reports", "full_content")):
        assert project.index.working.read(f"SELECT count(*) FROM {table} WHERE {column} ILIKE '% the … %'").item()
    rag = GraphRAG(project.root / "index")
    answers = [rag.basic("Who commanded the Great Eastern?").answer]
    answers.append("".join(rag.stream("basic", "Who commanded the ship Great Eastern?")))
    assert all(" the … " in answer for answer in answers), answers
    places = everything(project) | {"answers": "\n".join(answers)}
    assert [place for place, content in places.items() if "plantedchatsecret" in content] == []


@pytest.mark.long
def test_the_search_finds_a_secret_where_there_is_one(recorded):
    project, _ = recorded
    project.write("one/a.md", TEXT + f" The key was {CHAT_KEY}.")
    project.index_all()
    found = {place for place, content in everything(project).items() if CHAT_KEY in content}
    assert {"input/one/a.md", "working.duckdb: documents"} <= found


def test_the_ui_shows_no_resource_with_a_key(recorded):
    shown = str(RepositorySnap.from_def(defs().get_repository_def()).resources)
    assert "planted" not in shown
    assert "api_key" not in shown


def test_a_key_cannot_be_typed_into_a_run(recorded):
    project, server = recorded
    job = defs().get_repository_def().get_job("update_index")
    config = {"resources": {"index": {"config": {"chat_api_key": "typed0123"}}}}
    with pytest.raises(dg.DagsterInvalidConfigError) as refused:  # before there is a run
        job.execute_in_process(instance=project.instance, run_config=config)
    assert "chat_api_key" in str(refused.value)
    assert project.instance.get_runs_count() == 0
    assert not server.requests


@pytest.mark.long
def test_keys_of_the_settings_are_the_ones_that_are_sent(recorded, monkeypatch):
    project, server = recorded
    server.api_key = CHAT_KEY
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_API_KEY", CHAT_KEY)
    project.write("one/a.md", TEXT)
    project.index_all()
    index = Index(project.index.database, keys=Keys("sk-wrong", "sk-wrong"))
    assert "sk-wrong" not in repr(index)
    with pytest.raises(Exception, match="401"):
        index.models().embed(["a text that was not embedded yet"])


@pytest.mark.long
def test_passwords_in_urls_are_shown_nowhere(recorded, monkeypatch):
    project, server = recorded
    project.write("one/a.md", TEXT)
    address = server.url.removeprefix("http://")
    for name in ("CHAT_BASE_URL", "EMBEDDING_BASE_URL"):
        monkeypatch.setenv(f"GRAPHRAG_{name}", f"http://me:plantedpassword@{address}?token=plantedtoken")
    project.run("update_index", succeed=False)  # whatever the server makes of such an address
    monkeypatch.setenv("GRAPHRAG_INPUT", "memory://key:plantedpassword@nowhere/documents?token=plantedtoken")
    project.run("update_index", succeed=False)
    places = everything(project)
    assert [place for place, content in places.items() if re.search("plantedpassword|plantedtoken", content)] == []
    assert "plantedpassword" not in str(Settings.load().as_rows()) + Settings.load().input_as_given
