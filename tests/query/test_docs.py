"""The examples of docs/query.md."""

import json
import re
import sys
from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG
from tests.conftest import indexed
from tests.test_docs import ROOT, blocks

sys.path.insert(0, str(ROOT / "docs"))

import make_query_examples as examples

AGAIN = "Run `python docs/make_query_examples.py` and look at what changed in docs/query.md."


@pytest.fixture
def index(sample_index, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_DATA", str(sample_index.root))
    monkeypatch.delenv("GRAPHRAG_CHAT_MODEL", raising=False)
    return sample_index.root / "index"


@pytest.mark.extended
@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_answers_of_the_guide_are_real(index, name) -> None:
    assert examples.EXAMPLES[name](index) == examples.shown(name), AGAIN


@pytest.mark.extended
def test_python_of_the_guide_prints_the_output_it_shows(index, capsys) -> None:
    names: dict[str, object] = {}
    for code in blocks("docs/query.md", "python"):
        exec(compile(code, "docs/query.md", "exec"), names)
        said = capsys.readouterr().out
        for comment in re.findall(r"^print\(.*\)  # (local search .*)$", code, re.MULTILINE):
            assert comment in said


@pytest.mark.long
def test_the_worked_example_of_the_ranking_holds(tmp_path: Path) -> None:
    guide = (ROOT / "docs/query.md").read_text(encoding="utf-8")
    part = guide[guide.index("## How a passage is ranked") : guide.index("`rag.retrieve` shows this for any question")]
    tables = [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
        for block in re.findall(r"(?:^\|.*\n)+", part, re.MULTILINE)
    ]
    passages, shown = tables
    question = re.search(r'^"(Which river [^"]*)"', part, re.MULTILINE)
    assert question
    rows = [{"id": title, "title": title, "text": text} for title, text in passages]
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "passages.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with indexed(tmp_path, tmp_path / "input"):
        found = GraphRAG(tmp_path / "index").retrieve(question[1])
    assert [
        [row["document"], str(row["rank_by_words"] or "–"), f"{row['score']:.3f}", ", ".join(row["about"])]
        for row in found.iter_rows(named=True)
    ] == shown
