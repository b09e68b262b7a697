"""The README: its SQL and Python run on the sample corpus, and its settings are complete."""

import importlib
import json
import re
import sys
from pathlib import Path

import dagster as dg
import pytest

from graphrag_assets.settings import OTHER_VARIABLES, Settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

import make_settings_table

ROOT = Path(__file__).resolve().parents[1]


def blocks(path: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("query", blocks("README.md", "sql"))
def test_the_readmes_sql_finds_rows_in_the_sample_corpus(sample_index, query):
    assert bool(sample_index.sql(query)) == ("FROM index_errors" not in query)


@pytest.mark.extended
def test_the_readmes_python_runs(sample_index, monkeypatch, capsys):
    monkeypatch.setenv("GRAPHRAG_DATA", str(sample_index.root))
    (code,) = blocks("README.md", "python")
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "mirror galvanometer" in printed
    assert "mirror-and-siphon.txt" in printed


@pytest.mark.parametrize("query", blocks("docs/models.md", "sql")[0].strip().split(";\n\n"))
def test_the_queries_on_spend_run(sample_index, query):
    assert sample_index.sql(query) == []  # no model was called


def test_every_setting_is_documented_with_its_default():
    again = "Run `python docs/make_settings_table.py`."
    assert make_settings_table.table() in (ROOT / "docs/models.md").read_text(encoding="utf-8"), again


def test_every_variable_of_the_guides_and_of_deploy_is_known():
    files = [*(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").rglob("*"), ROOT / "README.md", ROOT / "dagster.yaml"]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
    named = set(re.findall(r"\bGRAPHRAG_[A-Z_]*[A-Z]\b", text))
    others = {"GRAPHRAG_API_KEY"}  # of Microsoft GraphRAG
    assert named - {f"GRAPHRAG_{name.upper()}" for name in Settings.model_fields} - {*OTHER_VARIABLES} <= others


def test_the_guides_alert_reports_a_failed_run(project, monkeypatch):
    posted = []
    monkeypatch.setattr("urllib.request.urlopen", lambda request, timeout: posted.append(json.loads(request.data)))
    monkeypatch.setenv("ALERT_URL", "http://hook")
    (code,) = (block for block in blocks("docs/dagster.md", "python") if "failed_runs_alert" in block)
    names: dict = {}
    exec(compile(code, "alerts.py", "exec"), names)
    repository = names["defs"].get_repository_def()

    def tick(cursor: str | None = None) -> str | None:
        context = dg.build_sensor_context(instance=project.instance, repository_def=repository, cursor=cursor)
        names["failed_runs_alert"].evaluate_tick(context)
        return context.cursor

    cursor = tick()  # later runs are reported
    failed = project.run("rollback", succeed=False, ops={"roll_back_publication": {"config": {"publication": 99}}})
    tick(cursor)
    (said,) = posted
    assert said["text"].startswith("Failed: rollback. ")
    assert "Nothing is published in" in said["text"]
    assert failed.run_id in said["text"]


def test_links_of_the_readme_and_the_guides_lead_to_files():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        links = re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text(encoding="utf-8"))
        assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_functions_named_in_the_life_of_a_document_exist():
    guide = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)+)\.(?!py`|jinja`|sql`)(\w+)`", guide)
    assert len(named) > 20
    for module, name in named:
        assert hasattr(importlib.import_module(f"graphrag_assets.{module.replace('/', '.')}"), name), (module, name)
    for file in re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.(?:py|jinja|sql))`", guide):
        assert (ROOT / "graphrag_assets" / file).exists() or (ROOT / file).exists(), file
