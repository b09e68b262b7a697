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
    "april.md": """# Board of Brightwater Engineering

The chair opened the meeting. The pumps were approved.

## Terms and Conditions

Nothing was said of them.

## Report of Ida Lindqvist

She had looked at the wells.

## Lease of the Marlow Cold Storage Ltd building

It ends soon.
""",
    "mail.eml": """From: "Okafor, Tomas" <tomas@example.org>
To: Dana Whitlock (Sales) <dana@example.org>, office@example.org
Cc: Piet Vos <piet@example.org>
Subject: Question about the Velmora Dam
Date: Tue, 4 Mar 2025 09:00:00 +0000

Please send me the price by Friday.
""",
}


@pytest.fixture(scope="module")
def graph(shared_folder: Path) -> GraphRAG:
    documents = shared_folder / "names-from-files-documents"
    documents.mkdir(exist_ok=True)
    for name, text in DOCUMENTS.items():
        (documents / name).write_text(text, encoding="utf-8")
    return GraphRAG(index_once(shared_folder / "names-from-files", documents) / "index")


def rows(graph: GraphRAG, query: str) -> list[tuple[object, ...]]:
    return list(graph.sql(query).iter_rows())


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


@pytest.mark.extended
def test_a_name_in_a_heading_is_a_mention_with_its_place(graph: GraphRAG) -> None:
    for name in ("Brightwater Engineering", "Ida Lindqvist", "Marlow Cold Storage Ltd"):
        [(source, place)] = rows(graph, f"SELECT source, name_at FROM entity_evidence('{name}')")
        assert (source, place) == ("april.md", DOCUMENTS["april.md"].index(name))
    assert not rows(graph, "FROM entities WHERE title IN ('Terms and Conditions', 'Terms', 'Conditions')")


@pytest.mark.extended
def test_who_writes_whom_is_a_mention_of_the_mail(graph: GraphRAG) -> None:
    found = rows(
        graph,
        "SELECT m.title FROM entity_mentions m JOIN documents d ON d.id = m.document_id "
        "WHERE d.source = 'mail.eml' ORDER BY m.title",
    )
    assert [name for (name,) in found] == [
        "Dana Whitlock",
        "Piet Vos",
        "Question about the Velmora Dam",
        "Tomas Okafor",
        "Velmora Dam",
    ]
