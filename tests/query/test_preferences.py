"""Passages of the time, version or document that a question names are preferred."""

from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG
from tests.conftest import index_once

MONTHS = ["January", "February", "March", "April", "May", "June"]
SAID = ["a new crane", "two barges", "more coal", "another clerk", "a lamp", "paint"]


@pytest.fixture(scope="module")
def rag(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> GraphRAG:
    """Minutes of six months, whose texts are alike and name no date; and notes on three versions."""
    folder = tmp_path_factory.mktemp("preferences") / "input" / "archive"
    folder.mkdir(parents=True)
    for number, thing in enumerate(SAID, 1):
        (folder / f"minutes-2025-{number:02}-10.md").write_text(
            f"# Minutes\n\nThe board of the Harbour Company met. The board decided to buy {thing} for the harbour."
        )
    notes = "\n\n".join(f"## {v}\n\nThe export of tables was changed: it {d}." for v, d in VERSIONS.items())
    (folder / "notes.md").write_text(f"# Release notes\n\n{notes}")
    return GraphRAG(index_once(shared_folder / "preferences", folder.parent) / "index")


VERSIONS = {"1.2.0": "writes headers", "2.2.0": "quotes every field of the table", "2.2.1": "has no more blank lines"}


def best(rag: GraphRAG, question: str, method: str) -> str:
    """The text of the first source of a context."""
    return rag.context(method, question).frames["sources"]["text"][0]


@pytest.mark.parametrize("method", ["local", "basic"])
@pytest.mark.parametrize("number", range(6))
def test_passages_of_the_month_in_a_question_come_first(rag: GraphRAG, method: str, number: int) -> None:
    question = f"What did the board of the Harbour Company buy in {MONTHS[number]} 2025?"
    assert SAID[number] in best(rag, question, method)


@pytest.mark.parametrize("method", ["local", "basic"])
def test_a_document_in_a_question_comes_first(rag: GraphRAG, method: str) -> None:
    assert SAID[4] in best(rag, "What did the board buy, by minutes-2025-05-10.md?", method)


def test_a_version_in_a_question_comes_first(rag: GraphRAG) -> None:
    found = rag.retrieve("What was changed in the export of tables in version 2.2.0?", k=3)
    assert "quotes every field" in found["text"][0]
