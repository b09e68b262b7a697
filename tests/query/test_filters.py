"""Filters: a search sees exactly what an index of the allowed documents alone would contain.

An index is made of mentions; the same is made of the mentions of some documents only. What a filter shows of the one
has to be what the other holds.
"""

import json
from collections.abc import Callable, Sequence
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.query.entities import entities_for
from graphrag_assets.query.fetch import (
    entity_rows,
    level_reports,
    relationships_around,
    report_tree,
    reports_about,
)
from graphrag_assets.query.options import Filter
from graphrag_assets.query.passages import rank_passages
from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import search_texts, vector_scores
from graphrag_assets.query.scope import EVERYTHING, scope_of
from graphrag_assets.store.publication_reader import CurrentPublication, Reader
from tests.query.small_index import write_publication
from tests.word_vectors import MODEL, embedded_question

# document: batch, raw_data
DOCUMENTS = {
    "voyage": ("ships", {"year": "1858", "tags": ["sea", "cable"]}),
    "sale": ("money", {"year": "1866", "tags": ["money"]}),
    "secret": ("money", {"year": "1866", "sealed": True, "a/b~c": 7}),
}
DATES = {"voyage": date(1858, 8, 5), "sale": date(1866, 1, 31), "secret": None}

# document, text
UNITS = [
    ("voyage", "The Niagara met the Agamemnon. Hudson commanded the Niagara."),
    ("voyage", "Hudson landed the cable at Valentia."),
    ("sale", "The Agamemnon was sold to Gooch for twenty pounds."),
    ("secret", "Hudson took the zanzibar bribe from Gooch, and hid it in the Niagara."),
    ("secret", "The zanzibar spy Moriarty paid Gooch."),
]

# text unit, title, type, description
ENTITY_MENTIONS = [
    (0, "Niagara", "SHIP", "The Niagara met the Agamemnon."),
    (0, "Agamemnon", "SHIP", "The Agamemnon met the Niagara."),
    (0, "Hudson", "PERSON", "Hudson commanded the Niagara."),
    (1, "Hudson", "PERSON", "Hudson landed the cable."),
    (1, "Valentia", "PLACE", "Valentia is where the cable landed."),
    (2, "Agamemnon", "SHIP", "The Agamemnon was sold."),
    (2, "Gooch", "PERSON", "Gooch bought the Agamemnon."),
    (3, "HUDSON THE BRIBED", "CRIMINAL", "Hudson took the zanzibar bribe."),
    (3, "HUDSON THE BRIBED", "CRIMINAL", "Hudson hid the zanzibar bribe."),
    (3, "Gooch", "PERSON", "Gooch paid the zanzibar bribe."),
    (3, "Niagara", "VAULT", "The Niagara held the zanzibar bribe."),
    (4, "Moriarty", "CRIMINAL", "Moriarty is a zanzibar spy."),
    (4, "Gooch", "PERSON", "Gooch was paid by the zanzibar spy."),
]
ALIASES = [("secret", "hudson the bribed", "hudson")]

# text unit, source, target, description, strength, type
RELATIONSHIP_MENTIONS = [
    (0, "Niagara", "Agamemnon", "They met.", 3.0, "MET"),
    (0, "Hudson", "Niagara", "Hudson commanded the Niagara.", 5.0, "COMMANDED"),
    (1, "Hudson", "Valentia", "Hudson landed at Valentia.", 2.0, "VISITED"),
    (2, "Gooch", "Agamemnon", "Gooch bought the Agamemnon.", 4.0, "BOUGHT"),
    (3, "HUDSON THE BRIBED", "Niagara", "Hudson hid the zanzibar bribe in the Niagara.", 9.0, "BRIBED"),
    (3, "Gooch", "HUDSON THE BRIBED", "Gooch bribed Hudson for zanzibar.", 8.0, "BRIBED"),
    (4, "Moriarty", "Gooch", "The zanzibar spy paid Gooch.", 7.0, "PAID"),
]

# text unit, subject, description
CLAIMS = [(1, "Hudson", "Hudson landed the cable."), (3, "Hudson", "Hudson took the zanzibar bribe.")]
CLAIMS += [(2, "Valentia", "Valentia was insured by Gooch.")]  # which the text unit names in no other way

# community: level, members
COMMUNITIES = {
    0: (0, ["niagara", "agamemnon", "hudson", "valentia", "gooch", "moriarty"]),
    1: (1, ["niagara", "agamemnon"]),
    2: (1, ["hudson"]),
    3: (1, ["valentia"]),
    4: (1, ["gooch", "moriarty"]),
}

SECRETS = ["zanzibar", "bribe", "moriarty", "spy", "criminal", "vault"]


def write(
    folder: Path, documents: list[str], aliases: Sequence[tuple[str, str, str]] = ALIASES, vectors: bool = False
) -> Path:
    """A publication of the mentions of these documents."""
    units = {n: f"u{n}" for n, (document, _) in enumerate(UNITS) if document in documents}
    named = [(units[n], *row) for n, *row in ENTITY_MENTIONS if n in units]
    descriptions: dict[str, list[str]] = {}
    for _, title, _, description in named:
        descriptions.setdefault(title.lower().removesuffix(" the bribed"), []).append(description)
    texts = {c: " ".join(d for m in of for d in descriptions.get(m, ())) for c, (_, of) in COMMUNITIES.items()}
    return write_publication(
        folder,
        [
            {
                "id": d,
                "title": d.title(),
                "source": f"{DOCUMENTS[d][0]}/{d}.txt",
                "batch": DOCUMENTS[d][0],
                "document_date": DATES[d],
                "raw_data": json.dumps(DOCUMENTS[d][1]),
                "text": "".join(text for document, text in UNITS if document == d),
            }
            for d in documents
        ],
        [
            {"id": id, "document_id": UNITS[n][0], "batch": "b", "text": UNITS[n][1], "n_sentences": 1, "ordinal": n}
            for n, id in units.items()
        ],
        named,
        [(units[n], *row) for n, *row in RELATIONSHIP_MENTIONS if n in units],
        [
            {"text_unit_id": units[n], "subject_id": subject, "description": text}
            for n, subject, text in CLAIMS
            if n in units
        ],
        {c: (level, -1 if level == 0 else 0, members) for c, (level, members) in COMMUNITIES.items()},
        [
            {
                "id": f"r{c}",
                "human_readable_id": c,
                "community": c,
                "level": COMMUNITIES[c][0],
                "title": f"Report {c}",
                "summary": text,
                "full_content": text,
                "rank": 5.0,
            }
            for c, text in texts.items()
            if text
        ],
        [row for row in aliases if row[0] in documents],
        MODEL if vectors else "",
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return CurrentPublication(write(tmp_path_factory.mktemp("whole"), list(DOCUMENTS))).reader()


@pytest.fixture(scope="module")
def whole_with_vectors(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return CurrentPublication(write(tmp_path_factory.mktemp("vectors"), list(DOCUMENTS), vectors=True)).reader()


@pytest.fixture(scope="module")
def index_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Reader]:
    made: dict[tuple[str, ...], Reader] = {}

    def reader(*documents: str) -> Reader:
        if documents not in made:
            made[documents] = CurrentPublication(write(tmp_path_factory.mktemp("part"), list(documents))).reader()
        return made[documents]

    return reader


PARTS = [part for size in (1, 2, 3) for part in combinations(DOCUMENTS, size)]


def numbers(reader: Reader, table: str, scope: Any = EVERYTHING) -> list[int]:
    kind = {"entities": "entity", "relationships": "relationship", "text_units": "text_unit"}[table]
    query = f"SELECT human_readable_id FROM {table} WHERE {scope.allows(kind, 'human_readable_id')} ORDER BY 1"
    return reader.numbers(query, {})


@pytest.mark.parametrize("documents", PARTS)
def test_entities_are_those_of_an_index_of_the_allowed_documents(whole, index_of, documents) -> None:
    part, scope = index_of(*documents), scope_of(whole, Filter(documents=documents))
    columns = ["title", "type", "description", "degree", "frequency"]
    shown = entity_rows(whole, numbers(whole, "entities", scope), scope).select(columns).sort(columns)
    assert shown.rows() == entity_rows(part, numbers(part, "entities")).select(columns).sort(columns).rows()


@pytest.mark.parametrize("documents", PARTS)
def test_relationships_are_those_of_an_index_of_the_allowed_documents(whole, index_of, documents) -> None:
    part, scope = index_of(*documents), scope_of(whole, Filter(documents=documents))

    def shown(reader: Reader, scope: Any = EVERYTHING) -> list[tuple]:
        found = relationships_around(reader, numbers(reader, "entities", scope), 100, scope=scope)
        ends = pl.concat_list(pl.min_horizontal("source", "target"), pl.max_horizontal("source", "target"))
        columns = [ends.list.join(" "), "type", "description", "weight", "combined_degree", "in_network", "links"]
        return sorted(found.select(columns).rows())

    assert shown(whole, scope) == shown(part)


def test_reports_are_used_only_when_all_they_draw_on_is_allowed(whole_with_vectors: Reader) -> None:
    whole = whole_with_vectors

    def reports(*documents: str) -> set[int]:
        scope = scope_of(whole, Filter(documents=documents))
        everyone = numbers(whole, "entities")
        found = set(reports_about(whole, everyone, scope)["community"])
        assert set(search_texts(whole, "community_report", embedded_question("the"), 10, scope)) <= found
        assert set(vector_scores(whole, "community_report", embedded_question("the cable"), 10, scope)) <= found
        assert set(report_tree(whole, scope)["report"].drop_nulls()) == found
        return found

    assert reports(*DOCUMENTS) == {0, 1, 2, 3, 4}
    assert reports("voyage", "sale") == {3}  # Hudson, the Niagara and Gooch are in the secret too
    assert reports("secret") == set()
    assert reports("sale", "secret") == {4}
    assert reports("voyage", "secret") == {2}  # a claim of the sale is part of the report on Valentia


def test_below_a_forbidden_report_the_allowed_ones_are_read(whole: Reader) -> None:
    scope = scope_of(whole, Filter(documents=("voyage", "sale")))
    found = level_reports(whole, 0, scope)
    assert found["community"].to_list() == [3]
    assert found["occurrence_weight"].to_list() == [1.0]  # nothing of what is left out counts
    assert level_reports(whole, 0)["community"].to_list() == [0]


def test_types_limit_entities_but_not_text(whole: Reader) -> None:
    scope = scope_of(whole, Filter(entity_types="SHIP"))
    titles = entity_rows(whole, entities_for(whole, Question("Gooch"), 10, scope), scope)
    assert set(titles["title"]) == {"Agamemnon"} | ({"Niagara"} if "SHIP" in set(titles["type"]) else set())
    assert set(titles["type"]) == {"SHIP"}
    assert titles["degree"].to_list() == [1] * titles.height  # only ships are counted
    named = Question("Niagara Hudson Gooch Moriarty bought")  # a word of each text unit
    assert len(rank_passages(whole, named, 10, scope).numbers) == len(UNITS)
    assert set(reports_about(whole, numbers(whole, "entities"), scope)["community"]) == {0, 1, 2, 3, 4}


def test_the_type_of_an_entity_is_the_one_that_the_allowed_text_gives(whole: Reader) -> None:
    secret = Filter(documents="secret", entity_types="CRIMINAL")
    shown = entity_rows(whole, numbers(whole, "entities", scope_of(whole, secret)), scope_of(whole, secret))
    assert sorted(shown["title"]) == ["HUDSON THE BRIBED", "Moriarty"]
    voyage = scope_of(whole, Filter(documents="voyage", entity_types="CRIMINAL"))
    assert numbers(whole, "entities", voyage) == []


@pytest.mark.parametrize(
    ("filter", "documents"),
    [
        (Filter(batches=("ships",)), ["voyage"]),
        (Filter(documents="Voyage"), ["voyage"]),
        (Filter(documents=["ships/voyage.txt", "sale"]), ["sale", "voyage"]),
        (Filter(metadata={"year": "1866"}), ["sale", "secret"]),
        (Filter(metadata={"year": [1858, 1866], "tags": "money"}), ["sale"]),
        (Filter(metadata={"sealed": True}), ["secret"]),
        (Filter(metadata={"a/b~c": 7}), ["secret"]),
        (Filter(batches="money", metadata={"year": 1866}, documents="Sale"), ["sale"]),
        (Filter(batches="ships", documents="Sale"), []),
        (Filter(metadata={"year": []}), []),
        (Filter(batches="ships", documents=[]), []),
        (Filter(as_of="1858-08-05"), ["voyage"]),
        (Filter(as_of=date(1858, 8, 4)), []),
        (Filter(as_of="1866-01"), ["sale", "voyage"]),
        (Filter(since="1866-01-31"), ["sale"]),
        (Filter(since="1858-08", as_of="1858"), ["voyage"]),
    ],
)
def test_documents_are_chosen_by_batch_name_and_metadata(whole: Reader, filter: Filter, documents: list[str]) -> None:
    units = numbers(whole, "text_units", scope_of(whole, filter))
    assert sorted({UNITS[number][0] for number in units}) == documents


def test_sources_and_claims_show_the_dates_of_documents(whole: Reader, index_of: Callable[..., Reader]) -> None:
    with GraphRAG(whole.path) as rag, GraphRAG(index_of("secret").path) as undated:
        text = rag.context("local", "Who commanded the Niagara?", text_unit_prop=0.0).text
        assert "id|document_date|context|text\n" in text
        assert "id|document_date|entity|object|" in text
        assert "|1858-08-05|Voyage|Hudson" in text
        assert "document_date" not in undated.context("local", "Who commanded the Niagara?").text


def test_dates_allow_nothing_where_no_document_has_one(index_of: Callable[..., Reader]) -> None:
    scope = scope_of(index_of("secret"), Filter(since="1858"))
    assert "GRAPHRAG_DATE_COLUMN" in scope.missing[0]
    assert numbers(index_of("secret"), "text_units", scope) == []


def test_types_limit_relationships_but_neither_entities_nor_text(whole: Reader) -> None:
    scope = scope_of(whole, Filter(relationship_types=["BRIBED", "MET"]))
    entities = numbers(whole, "entities", scope)
    assert entities == numbers(whole, "entities")
    found = relationships_around(whole, entities, 100, scope=scope)
    assert sorted(found["type"]) == ["BRIBED", "BRIBED", "MET"]  # of BRIBED and COMMANDED, the first by name
    assert found["combined_degree"].to_list() == [4, 3, 3]  # of these relationships alone
    assert numbers(whole, "text_units", scope) == numbers(whole, "text_units")


@pytest.mark.parametrize(
    ("limits", "types", "shown"),
    [
        ({}, "COMMANDED", ["BRIBED"]),  # the pair has both types, and most mentions, or the first by name, one
        ({"documents": "voyage"}, "COMMANDED", ["COMMANDED"]),
        ({"documents": "voyage"}, "BRIBED", []),
        ({"as_of": "1857"}, "COMMANDED", []),
        ({"entity_types": "SHIP"}, "MET", ["MET"]),
    ],
)
def test_a_relationship_is_allowed_if_an_allowed_text_gives_it_the_type(
    whole: Reader, limits: dict[str, Any], types: str, shown: list[str]
) -> None:
    scope = scope_of(whole, Filter(**limits, relationship_types=types))
    found = relationships_around(whole, numbers(whole, "entities", scope), 100, scope=scope)
    assert found["type"].to_list() == shown


def test_a_relationship_that_another_text_ends_comes_last_but_where_that_text_is_hidden(tmp_path: Path) -> None:
    documents = [
        {"id": name, "title": name, "source": name, "batch": "b", "document_date": date(year, 1, 1)}
        for name, year in (("old", 1858), ("new", 1866))
    ]
    units = [{"id": d["id"], "document_id": d["id"], "batch": "b", "text": "She was commanded."} for d in documents]
    named = [("old", "Niagara", "SHIP", ""), ("old", "Hudson", "PERSON", ""), ("new", "Gooch", "PERSON", "")]
    commanded = [("old", "Hudson", "Niagara", "He did.", 9.0, "COMMANDED")]
    commanded += [("new", "Gooch", "Niagara", "He does.", 1.0, "COMMANDED")]
    reader = CurrentPublication(write_publication(tmp_path, documents, units, named, commanded)).reader()
    columns = ["source", "over", "predicates"]
    assert relationships_around(reader, [0], 9).select(columns).rows() == [
        ("Gooch", False, "COMMANDED"),
        ("Hudson", True, "COMMANDED (1858-01-01, until 1866-01-01)"),
    ]
    before = scope_of(reader, Filter(as_of="1858"))
    assert relationships_around(reader, [0], 9, before).select(columns).rows() == [("Hudson", False, "COMMANDED")]
