"""`init`: a new `.env`, also from GraphRAG's settings."""

import re
import shutil
from pathlib import Path

import pytest
from dotenv import dotenv_values

from graphrag_assets.settings import Settings
from tests.cli import run_command

SETTINGS = Path(__file__).parent / "data" / "graphrag-settings"
SECRET = "sk-planted-1234567890"


@pytest.fixture(autouse=True)
def _no_settings(tmp_path, monkeypatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(f"GRAPHRAG_{name.upper()}", raising=False)
    monkeypatch.delenv("GRAPHRAG_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)


def graphrag_project(folder: Path, version: int) -> Path:
    folder.mkdir()
    shutil.copy(SETTINGS / f"graphrag-{version}.yaml", folder / "settings.yaml")
    (folder / ".env").write_text(f"GRAPHRAG_API_KEY={SECRET}\nUNRELATED=1\n")
    return folder / "settings.yaml"


def test_a_new_folder_has_the_defaults_as_comments(tmp_path, monkeypatch):
    printed = run_command("init", "mine")
    assert "cd mine" in printed
    assert "put documents in data/input/" in printed
    assert "graphrag-assets doctor" in printed
    assert (tmp_path / "mine/data/input").is_dir()
    env = tmp_path / "mine/.env"
    assert env.stat().st_mode & 0o777 == 0o600
    assert dotenv_values(env) == {}
    monkeypatch.chdir(tmp_path / "mine")
    given = re.sub(r"^# (GRAPHRAG_\w+=.+)$", r"\1", env.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert given.count("\nGRAPHRAG_") > 10
    env.write_text(given, encoding="utf-8")
    assert Settings.load() == Settings(_env_file=None)  # type: ignore[call-arg]


def test_an_existing_file_is_replaced_only_with_the_option(tmp_path):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=mine\n")
    (tmp_path / ".env").chmod(0o644)
    refused = run_command("init", status=1)
    assert ".env exists" in refused
    assert "--force" in refused
    assert (tmp_path / ".env").read_text() == "OPENAI_API_KEY=mine\n"
    assert "cd " not in run_command("init", "--force")
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    assert dotenv_values(tmp_path / ".env") == {}


@pytest.mark.parametrize("version", [2, 3])
def test_settings_of_graphrag_are_in_force_and_its_key_is_not_printed(tmp_path, monkeypatch, version):
    theirs = graphrag_project(tmp_path / "theirs", version)
    printed = run_command("init", "mine", "--from", str(theirs))
    env = tmp_path / "mine/.env"
    assert SECRET not in printed
    values = dotenv_values(env)
    assert values["GRAPHRAG_CHAT_API_KEY"] == values["GRAPHRAG_EMBEDDING_API_KEY"] == SECRET
    assert "UNRELATED" not in values
    monkeypatch.chdir(tmp_path / "mine")
    settings = Settings.load()
    assert settings.chunk_size == 1200
    assert settings.input_folder == str(tmp_path / "theirs/input")
    names = re.findall(r"^(?:# )?(GRAPHRAG_\w+)=", env.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(names) == len(set(names))
    for listed in ("extract_graph.prompt", "snapshots.graphml", "basic_search.prompt"):
        assert f"# Not translated: {listed}\n" in env.read_text(encoding="utf-8")
        assert listed in printed


def test_references_and_strange_values_survive(tmp_path, monkeypatch):
    (tmp_path / "settings.yaml").write_text(
        """models:
  default_chat_model: {type: chat, model_provider: azure, model: "${DEPLOYMENT}-4", api_key: "it's a # key"}
extract_graph: {entity_types: [a b, "c#d", "it's", "${TYPE}"]}
"x\\nGRAPHRAG_LANGUAGE=1": 1
"""
    )
    (tmp_path / ".env").write_text("DEPLOYMENT=prod\nTYPE=ship\n")
    printed = run_command("init", "mine", "--from", "settings.yaml")
    assert "it's a # key" not in printed
    values = dotenv_values("mine/.env")
    assert values["GRAPHRAG_CHAT_MODEL"] == "azure/prod-4"
    assert values["GRAPHRAG_CHAT_API_KEY"] == "it's a # key"
    assert values["GRAPHRAG_ENTITY_TYPES"] == "a b, c#d, it's, ship"
    assert "GRAPHRAG_LANGUAGE" not in values
