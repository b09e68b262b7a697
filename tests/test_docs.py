"""What the README shows works: its SQL and Python run on the sample corpus, its settings are all there are."""

import re
from pathlib import Path

import pytest

from graphrag_assets.settings import Settings

ROOT = Path(__file__).resolve().parents[1]


def blocks(path: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("query", [q for q in blocks("README.md", "sql") if "index_errors" not in q])
def test_the_readmes_sql_finds_rows_in_the_sample_corpus(sample_index, query):
    assert sample_index.sql(query)


def test_the_readmes_query_for_skipped_input_runs(sample_index):
    assert sample_index.sql(blocks("README.md", "sql")[-1]) == []


def test_the_readmes_python_runs(sample_index, monkeypatch, capsys):
    monkeypatch.setenv("GRAPHRAG_DATA", str(sample_index.root))
    (code,) = blocks("README.md", "python")
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "mirror galvanometer" in printed
    assert "mirror-and-siphon.txt" in printed


def test_every_setting_is_documented_with_its_default():
    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    for name, field in Settings.model_fields.items():
        assert f"`GRAPHRAG_{name.upper()}` | `{field.default}` | {field.description} |" in text


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
