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
    "plant.md": """The plant

The crew of Walter Brandt moved the chat to Socket.IO in May. They called AT&T about the line. They ordered a Type A Pump.

They read the 1911 Census in the archive. Wikidata is large. The team met, Since Wikidata grew. He moved from \u0130zmir to Oslo.

The house of van Quorra stood empty. Then Ludwig van Hollen came. The Har\ufe0fbour Bank and the Harbour\u034f Bank are one.
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
    place = (
        "SELECT d.source, t.start_char + strpos(t.text, m.title) - 1 FROM entity_mentions m "
        "JOIN text_units t ON t.id = m.text_unit_id JOIN documents d ON d.id = t.document_id "
        "WHERE m.entity_number IN (FROM entities_called('{name}'))"
    )
    for name in ("Brightwater Engineering", "Ida Lindqvist", "Marlow Cold Storage Ltd"):
        [(source, name_at)] = rows(graph, place.format(name=name))
        assert (source, name_at) == ("april.md", DOCUMENTS["april.md"].index(name))
    assert not rows(graph, "FROM entities WHERE title IN ('Terms and Conditions', 'Terms', 'Conditions')")


@pytest.mark.extended
def test_names_have_the_words_that_are_theirs(graph: GraphRAG) -> None:
    found = rows(
        graph,
        "SELECT e.title FROM entities e WHERE e.type <> 'CONCEPT' AND e.id IN (SELECT unnest(entity_ids) "
        "FROM text_units t JOIN documents d ON d.id = t.document_id WHERE d.source = 'plant.md')",
    )
    assert {name for (name,) in found} == {
        "Walter Brandt", "Socket.IO", "AT&T", "Type A Pump", "1911 Census", "Wikidata", "\u0130zmir", "Oslo", "Quorra",
        "Ludwig van Hollen", "Harbour Bank",
    }  # fmt: skip


@pytest.mark.extended
@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("W. Brandt", "Walter Brandt"),
        ("W Brandt", "Walter Brandt"),
        ("izmir", "\u0130zmir"),
        ("Harbour\u115f Bank", "Harbour Bank"),
        ("T. Okafor", "Tomas Okafor"),
    ],
)
def test_an_entity_is_found_by_initials_and_however_it_is_encoded(graph: GraphRAG, asked: str, title: str) -> None:
    assert rows(graph, f"SELECT title FROM find_entity('{asked}') LIMIT 1") == [(title,)]
