"""The examples of docs/query.md."""

import re
import sys

import pytest

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
