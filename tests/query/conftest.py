"""A publication small enough to do searches by hand."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from graphrag_assets.query import GraphRAG, fetch
from graphrag_assets.store.publication_reader import CurrentPublication, Reader
from tests.openai_server import OpenAIServer, running
from tests.query.modeled import chat_answerer
from tests.query.small_index import write_publication
from tests.word_vectors import MODEL

AGAMEMNON, NIAGARA, HUDSON, VALENTIA, GREAT_EASTERN, EASTERN, GOOCH, PENGUIN = range(8)

# title, description
ENTITIES = [
    ("Agamemnon", "The Agamemnon carried half of the cable."),
    ("Niagara", "The Niagara was an American frigate."),
    ("William Hudson", "Captain William Hudson commanded the Niagara."),
    ("Valentia", "Valentia is an island in Ireland."),
    ("Great Eastern", "The Great Eastern was the largest ship afloat."),
    ("Eastern", "Eastern shares rose to twelve pounds."),
    ("Daniel Gooch", "Daniel Gooch headed the buyers."),
    ("Penguin", "Penguins were seen near the ice."),
]

# document, text, entities named
TEXT_UNITS = [
    (
        0,
        "The Agamemnon and the Niagara met in mid-ocean in June 1858. Captain William Hudson commanded the Niagara.\n",
        [AGAMEMNON, NIAGARA, HUDSON],
    ),
    (0, "The Agamemnon reached Valentia on 5 August 1858, where the people cheered.", [AGAMEMNON, VALENTIA]),
    (
        1,
        "The Great Eastern was sold for £25,000 to new owners. Daniel Gooch headed the buyers.\n",
        [GREAT_EASTERN, GOOCH],
    ),
    (1, "The Great Eastern left Valentia with the new cable in July 1866.", [GREAT_EASTERN, VALENTIA]),
    (2, "Eastern shares rose to twelve pounds. The chairman of the board was content.\n", [EASTERN]),
    (2, "Penguins were seen near the ice. The oil of the lamps cost nine pence a gallon.", [PENGUIN]),
]

# source, target, weight, text units
RELATIONSHIPS = [
    (AGAMEMNON, NIAGARA, 3.0, [0]),
    (NIAGARA, HUDSON, 2.0, [0]),
    (AGAMEMNON, VALENTIA, 1.0, [1]),
    (GREAT_EASTERN, GOOCH, 2.0, [2]),
    (GREAT_EASTERN, VALENTIA, 4.0, [3]),
]

# level 0: 0, 1, 2; community 0 is split into 3 and 4
COMMUNITIES = {
    0: (0, -1, [AGAMEMNON, NIAGARA, HUDSON, VALENTIA, GREAT_EASTERN, GOOCH]),
    1: (0, -1, [EASTERN]),
    2: (0, -1, [PENGUIN]),
    3: (1, 0, [AGAMEMNON, NIAGARA, HUDSON]),
    4: (1, 0, [VALENTIA, GREAT_EASTERN, GOOCH]),
}
LEVELS = {0: [0, 1, 2], 1: [3, 4, 1, 2]}  # level-complete: 1 and 2 are not split

# subject, text unit, description, start date
CLAIMS: list[tuple[int | None, int, str, str | None]] = [
    (GREAT_EASTERN, 2, "The Great Eastern was sold for £25,000 to new owners.", None),
    (
        AGAMEMNON,
        1,
        "The Agamemnon reached Valentia on 5 August 1858, where the people cheered.",
        "1858-08-05",
    ),
    (None, 5, "The oil of the lamps cost nine pence a gallon.", None),
]


def _text_units() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, (document, text, _) in enumerate(TEXT_UNITS):
        start = 0 if not rows or rows[-1]["document_id"] != f"d{document}" else rows[-1]["end_char"]
        place = {"document_id": f"d{document}", "start_char": start, "end_char": start + len(text)}
        title = f"Document {document}"
        row = {"id": f"t{number}", "batch": "b", "text": text, "headings": [title], "context": title}
        rows.append(row | place)
    return rows


def _report(community: int) -> dict[str, Any]:
    level, parent, members = COMMUNITIES[community]
    names = [ENTITIES[member][0] for member in members]
    summary = f"{ENTITIES[members[0]][1]} [Data: Entities ({members[0]})]"
    findings = [
        {"summary": name, "explanation": f"{text} [Data: Entities ({member})]"}
        for member, (name, text) in ((m, ENTITIES[m]) for m in members)
    ]
    content = f"# {', '.join(names)}\n\n{summary}\n\n" + "\n\n".join(
        f"## {finding['summary']}\n\n{finding['explanation']}" for finding in findings
    )
    return {
        "id": f"r{community}",
        "human_readable_id": community,
        "community": community,
        "level": level,
        "parent": parent,
        "title": ", ".join(names),
        "summary": summary,
        "full_content": content,
        "rank": 5.0 - community,
        "findings": findings,
        "size": len(members),
    }


def write_index(path: Path, model: str = "") -> Path:
    """A published file with the rows above; it has vectors if it is given the name of a `model`."""
    documents = [
        {
            "id": f"d{number}",
            "batch": "b",
            "source": f"b/document-{number}.txt",
            "title": f"Document {number}",
            "text": "".join(text for document, text, _ in TEXT_UNITS if document == number),
        }
        for number in range(3)
    ]
    mentions = [
        (f"t{unit}", title, "THING", description)
        for number, (title, description) in enumerate(ENTITIES)
        for unit, (_, _, named) in enumerate(TEXT_UNITS)
        if number in named
    ]
    relationships = [
        (
            f"t{unit}",
            ENTITIES[source][0],
            ENTITIES[target][0],
            f"{ENTITIES[source][0]} and {ENTITIES[target][0]}",
            w,
            "",
        )
        for source, target, w, units in RELATIONSHIPS
        for unit in units
    ]
    claims = [
        {
            "text_unit_id": f"t{unit}",
            "subject_id": "Lamps" if subject is None else ENTITIES[subject][0],
            "start_date": date,
            "description": description,
        }
        for subject, unit, description, date in CLAIMS
    ]
    communities = {c: (level, parent, [ENTITIES[m][0] for m in of]) for c, (level, parent, of) in COMMUNITIES.items()}
    reports = [_report(community) for community in COMMUNITIES]
    aliases = [(None, "captain of the niagara", "william hudson")]
    path.parent.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        published = write_publication(
            Path(folder),
            documents,
            _text_units(),
            mentions,
            relationships,
            claims,
            communities,
            reports,
            aliases,
            model,
        )
        return published.rename(path)


@pytest.fixture(autouse=True, scope="module")
def graph_in_contexts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Contexts of the small test collections as those of large ones, which cannot be read whole."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.name.endswith("test_small_collections.py"):
            patch.setattr(fetch, "all_text_units", lambda *_: [])
        yield


@pytest.fixture(scope="session")
def index_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_index(tmp_path_factory.mktemp("index") / "graphrag-1.duckdb")


@pytest.fixture(scope="session")
def reader(index_file: Path) -> Reader:
    return CurrentPublication(index_file).reader()


@pytest.fixture(scope="session")
def vector_reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """The same rows with vectors."""
    return CurrentPublication(write_index(tmp_path_factory.mktemp("vectors") / "graphrag-1.duckdb", MODEL)).reader()


@pytest.fixture(scope="session")
def rag(index_file: Path) -> GraphRAG:
    return GraphRAG(index_file)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with running() as server:
        yield server


@pytest.fixture
def modeled(server: OpenAIServer, index_file: Path, tmp_path: Path) -> GraphRAG:
    return GraphRAG(index_file, answerer=chat_answerer(server, tmp_path))
