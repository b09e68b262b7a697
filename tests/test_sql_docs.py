"""docs/sql.md: its queries give the answers shown, in Python and in DuckDB's shell."""

import re
import shutil
import sys

import duckdb
import pytest

from graphrag_assets.query import GraphRAG
from tests.test_docs import ROOT, blocks

sys.path.insert(0, str(ROOT / "docs"))

import make_sql_examples as examples


@pytest.fixture(scope="module")
def rag(sample_index) -> GraphRAG:
    return GraphRAG(sample_index.root / "index")


def test_the_guides_answers_are_real(rag):
    guide = examples.GUIDE.read_text(encoding="utf-8")
    assert len(examples.queries()) == 12
    again = "Run `python docs/make_sql_examples.py` and look at what changed in docs/sql.md."
    assert examples.answered(guide, rag) == guide, again


def test_the_guides_python_runs(sample_index, tmp_path, monkeypatch, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/index").symlink_to(sample_index.root / "index")
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("docs/sql.md", "python")
    exec(compile(code, "docs/sql.md", "exec"), {})
    assert "Heart's Content" in capsys.readouterr().out


def test_the_guides_way_to_attach_works(sample_index, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/index").symlink_to(sample_index.root / "index")
    (tmp_path / "other/index").mkdir(parents=True)
    shutil.copy(sample_index.root / "index/graphrag.duckdb", tmp_path / "other/index")
    monkeypatch.chdir(tmp_path)
    in_a_cell, statements, two_indexes = re.findall(
        r"^```\n(ATTACH .*?)```", examples.GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.M
    )
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE mine AS SELECT 'Cyrus Field' AS name")
        connection.execute(f"{in_a_cell}; FROM neighbors('Great Eastern'); USE memory; DETACH g")
        for statement in duckdb.extract_statements(statements):
            rows = connection.execute(statement.query).fetchall()
            assert rows or not statement.query.lstrip().startswith(("FROM", "SELECT"))
        rows = connection.execute("FROM neighbors('Great Eastern')").fetchall()
        connection.execute("USE memory; DETACH g")
        assert connection.execute(two_indexes).fetchall() == rows * 2
