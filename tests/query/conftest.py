"""A publication small enough to do searches by hand."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from benchmarks.retrieval_quality import Collection, collections
from graphrag_assets.query import GraphRAG, fetch
from graphrag_assets.store.connections import CONNECTION_CONFIG, execute_with
from graphrag_assets.store.macros import write_macros
from graphrag_assets.store.publication_reader import CurrentPublication, Reader
from graphrag_assets.store.schema import PUBLISHED, SCHEMA_VERSION
from graphrag_assets.text.words import title_key
from tests.conftest import SHARED_DATA, index_once
from tests.search_tables import search_tables_of
from tests.word_vectors import DIMENSIONS, MODEL, embed

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


def degree(entity: int) -> int:
    return sum(entity in (source, target) for source, target, _, _ in RELATIONSHIPS)


def _documents() -> list[dict[str, Any]]:
    return [
        {
            "id": f"d{number}",
            "human_readable_id": number,
            "batch": "b",
            "source": f"b/document-{number}.txt",
            "title": f"Document {number}",
            "text": "".join(text for document, text, _ in TEXT_UNITS if document == number),
        }
        for number in range(3)
    ]


def _text_units() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, (document, text, _) in enumerate(TEXT_UNITS):
        start = 0 if not rows or rows[-1]["document_id"] != f"d{document}" else rows[-1]["end_char"]
        rows.append(
            {
                "id": f"t{number}",
                "human_readable_id": number,
                "batch": "b",
                "document_id": f"d{document}",
                "start_char": start,
                "end_char": start + len(text),
                "text": text,
                "headings": [f"Document {document}"],
                "context": f"Document {document}",
            }
        )
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
        "children": [3, 4] if community == 0 else [],
        "title": ", ".join(names),
        "summary": summary,
        "full_content": content,
        "rank": 5.0 - community,
        "findings": findings,
        "size": len(members),
    }


def _rows() -> dict[str, list[dict[str, Any]]]:
    named = {number: [u for u, row in enumerate(TEXT_UNITS) if number in row[2]] for number in range(len(ENTITIES))}
    placed = [(c, level, entity) for level, cs in LEVELS.items() for c in cs for entity in COMMUNITIES[c][2]]
    return {
        "documents": _documents(),
        "text_units": _text_units(),
        "entities": [
            {
                "id": f"e{number}",
                "human_readable_id": number,
                "title": title,
                "title_key": title_key(title),
                "type": "THING",
                "description": description,
                "text_unit_ids": [f"t{unit}" for unit in named[number]],
                "frequency": len(named[number]),
                "degree": degree(number),
            }
            for number, (title, description) in enumerate(ENTITIES)
        ],
        "relationships": [
            {
                "id": f"l{number}",
                "human_readable_id": number,
                "source": ENTITIES[source][0],
                "target": ENTITIES[target][0],
                "source_number": source,
                "target_number": target,
                "description": f"{ENTITIES[source][0]} and {ENTITIES[target][0]}",
                "weight": weight,
                "combined_degree": degree(source) + degree(target),
            }
            for number, (source, target, weight, _) in enumerate(RELATIONSHIPS)
        ],
        "covariates": [
            {
                "id": f"c{number}",
                "human_readable_id": number,
                "subject_id": "Lamps" if subject is None else ENTITIES[subject][0],
                "object_id": "NONE",
                "subject_number": subject,
                "text_unit_number": unit,
                "status": "TRUE",
                "start_date": date,
                "description": description,
            }
            for number, (subject, unit, description, date) in enumerate(CLAIMS)
        ],
        "communities": [
            {
                "id": f"m{community}",
                "human_readable_id": community,
                "community": community,
                "level": level,
                "parent": parent,
                "children": [3, 4] if community == 0 else [],
                "text_unit_ids": sorted({f"t{unit}" for member in members for unit in named[member]}),
                "size": len(members),
            }
            for community, (level, parent, members) in COMMUNITIES.items()
        ],
        "community_reports": [_report(community) for community in COMMUNITIES],
        "edges": [
            {
                "entity": one,
                "neighbor": other,
                "relationship": number,
                "weight": weight,
                "combined_degree": degree(one) + degree(other),
            }
            for number, (source, target, weight, _) in enumerate(RELATIONSHIPS)
            for one, other in ((source, target), (target, source))
        ],
        "entity_text_units": [
            {
                "entity": number,
                "text_unit": unit,
                "n_relationships": sum(
                    unit in units and number in (source, target) for source, target, _, units in RELATIONSHIPS
                ),
            }
            for number, units_of in named.items()
            for unit in units_of
        ],
        "relationship_text_units": [
            {"relationship": number, "text_unit": unit}
            for number, (_, _, _, units) in enumerate(RELATIONSHIPS)
            for unit in units
        ],
        "entity_communities": [{"entity": e, "level": level, "community": c} for c, level, e in placed],
        "entity_aliases": [
            {"document_id": None, "alias_key": "captain of the niagara", "title_key": "william hudson"},
        ],
        "publication": [{"number": 1, "content_digest": "x", "version": "0", "schema_version": SCHEMA_VERSION}],
    }


def _embeddings(rows: dict[str, list[dict[str, Any]]], model: str) -> pl.DataFrame:
    texts = {
        "text_unit": [f"{row['context']}\n{row['text']}" for row in rows["text_units"]],
        "entity": [f"{row['title']}:{row['description']}" for row in rows["entities"]],
        "community_report": [row["full_content"] for row in rows["community_reports"]],
    }
    return pl.concat(
        pl.DataFrame(
            {
                "kind": kind,
                "number": range(len(found)),
                "model": model,
                "vector": embed(found).tolist(),
            }
        )
        for kind, found in texts.items()
    )


def write_index(path: Path, model: str = "", number: int = 1, empty: str | None = None) -> Path:
    """A published file with the rows above, as publication `number`; `empty` is a table without rows.

    It has vectors if it is given the name of a `model`.
    """
    rows = {table: [] if table == empty else of_table for table, of_table in _rows().items()}
    rows["publication"][0]["number"] = number
    with duckdb.connect(str(path), config=CONNECTION_CONFIG) as connection:
        for table in PUBLISHED:
            connection.execute(table.ddl().replace("{dimensions}", str(DIMENSIONS)))
        for table in (table for table in PUBLISHED if rows.get(table.name)):
            frame = pl.DataFrame(rows[table.name], infer_schema_length=None)
            execute_with(connection, f"INSERT INTO {table.sql_name} BY NAME FROM frame", frame=frame)
        if model:
            vectors = _embeddings(rows, model)
            execute_with(connection, "INSERT INTO embeddings BY NAME FROM vectors", vectors=vectors)
        search_tables_of(connection)
        write_macros(connection)
    return path


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
def hotpotqa(shared_folder: Path, tmp_path: Path) -> Callable[[str], tuple[Collection, Path]]:
    """Gives the passages and questions of HotpotQA, titled or untitled, and the folder of their index."""

    def find(name: str) -> tuple[Collection, Path]:
        if not (folder := SHARED_DATA / "hotpotqa-100").is_dir():
            pytest.skip("needs ../shared/data/hotpotqa-100")
        collection = next(each for each in collections(folder) if each.name == name)
        documents = tmp_path / "hotpotqa"
        documents.mkdir()
        for file, text in collection.files.items():
            (documents / file).write_text(text, encoding="utf-8")
        return collection, index_once(shared_folder / f"hotpotqa-{name}", documents) / "index"

    return find
