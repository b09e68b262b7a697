"""Planted secrets: whatever a run does with its keys, they are afterwards nowhere below the data folder."""

import re
import sqlite3

import dagster as dg
import duckdb
import pytest

from graphrag_assets.query import GraphRAG
from tests.assets.test_language_models import use
from tests.conftest import Project
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
