"""Names from files to answers and tables: spellings of questions, mentions in headings and headers, what is a name."""

from pathlib import Path

import pytest

from graphrag_assets.contracts.answering import CLOSEST
from graphrag_assets.query import GraphRAG
from tests.conftest import index_once

DOCUMENTS = {
    "crew.md": """# The survey

Inés Cortés measured the harbour in 1911. Tomás Valdés drew the chart of the bay. Andrés Núñez designed the first bridge.

Moisés Bérès repaired the lamp. Jörg Müller inspected the dam in 1925. Łukasz Gałązkowies sold the mill to the town.
""",
}


@pytest.fixture(scope="module")
def graph(shared_folder: Path) -> GraphRAG:
    documents = shared_folder / "names-from-files-documents"
    documents.mkdir(exist_ok=True)
    for name, text in DOCUMENTS.items():
        (documents / name).write_text(text, encoding="utf-8")
    return GraphRAG(index_once(shared_folder / "names-from-files", documents) / "index")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("as_typed", "as_written"),
    [
        ("What did Ines Cortes measure?", "What did Inés Cortés measure?"),
        ("What did Andres Nunez design?", "What did Andrés Núñez design?"),
        ("What did Tomas Valdes draw?", "What did Tomás Valdés draw?"),
        ("What did Moises Beres repair?", "What did Moisés Bérès repair?"),
        ("What did Joerg Mueller inspect?", "What did Jörg Müller inspect?"),
        ("What did Lukasz Galazkowies sell?", "What did Łukasz Gałązkowies sell?"),
    ],
)
def test_names_without_their_accents_are_answered_alike(graph: GraphRAG, as_typed: str, as_written: str) -> None:
    answer = graph.ask(as_typed).answer
    assert answer == graph.ask(as_written).answer
    assert not answer.startswith(CLOSEST)
