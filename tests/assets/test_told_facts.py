"""What a model tells of facts is kept: what they replace, and which names are one."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.contracts.records import ClaimRecord, EntityRecord, RelationshipRecord, TextUnit, UnitExtraction
from graphrag_assets.query import GraphRAG
from tests.comparison import index_at, no_settings, refresh


def related(source: str, kind: str, target: str, replaces: str = "") -> RelationshipRecord:
    return RelationshipRecord(source, target, f"{source} {kind} {target}.", 5, kind, replaces)


def claimed(
    subject: str, kind: str, said: str, status: str = "TRUE", replaces: str = "", object: str = "NONE"
) -> ClaimRecord:
    return ClaimRecord(subject, object, kind, said, "x", status, replaces=replaces)


DOCUMENTS: dict[str, list[RelationshipRecord | ClaimRecord]] = {
    "2024-01-10": [
        related("Moira Kean", "DIRECTOR_OF", "Kestrel"),
        related("Anna Falk", "DIRECTOR_OF", "Kestrel"),
        related("Helen Marsh", "NORDIC_MANAGING_DIRECTOR_OF", "Marlow"),
        related("Ida Brandt", "PROJECT_MANAGER_OF", "Harwick"),
        related("Nils Orm", "VICE_PRESIDENT_OF", "Harwick"),
        claimed("Fan", "PRICE", "The fan costs 18,400 pounds."),
        claimed("Contract", "TERMINATION", "The board ends the contract with Marlow."),
        claimed("Tomas Brandt", "REPLACEMENT", "Tomas Brandt replaced the contactor."),
    ],
    "2025-02-01": [
        related("Paul Reyes", "DIRECTOR_OF", "Kestrel", "Moira Kean as director"),
        related("Piet Vos", "MANAGING_DIRECTOR_OF", "Marlow"),
        related("Dana Whitlock", "PROJECT_MANAGER_OF", "Harwick"),
        related("Eva Dahl", "VICE_PRESIDENT_OF", "Harwick"),
        claimed("Fan", "PRICE", "The fan costs 19,150 pounds now.", replaces="18,400 pounds"),
        claimed("Contract", "TERMINATION", "The board withdraws its notice.", "FALSE"),
        claimed("Tomas Brandt", "REPLACEMENT", "Kestrel denies that he replaced it.", "FALSE"),
    ],
    "2025-03-22": [
        related("Tomas Brandt", "WORKS_FOR", "Kestrel"),
        replace(
            claimed("Tomas Brandt", "LEAVE", "He is ill.", object="Kestrel"),
            start_date="2025-03-06",
            end_date="2025-03-22",
        ),
        replace(
            claimed("Tomas Brandt", "JOB", "Tomas Brandt WORKS_FOR Kestrel.", object="Kestrel"), start_date="2023-05-02"
        ),
        related("Ruth Adeyemi", "CHAIRS", "Northern Health Board (NHB)"),
    ],
}
ENDED = {"Moira Kean", "Helen Marsh", "The fan costs 18,400 pounds.", "The board ends the contract with Marlow."}


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphRAG]:
    with pytest.MonkeyPatch.context() as patch:
        no_settings(patch)
        root = tmp_path_factory.mktemp("told")
        index = index_at(root, patch)
        folder = Path(index.settings.input_folder)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [json.dumps({"text": f"Minutes of {day}.", "title": day, "date": day}) for day in DOCUMENTS]
        (folder / "minutes.jsonl").write_text("\n".join(rows))
        index_batch(index, "minutes.jsonl", replace(index.models(), extract=extract, extractor="model#1"), "test")
        refresh(index)
        with GraphRAG(index.database.parent) as opened:
            yield opened


def extract(units: Iterable[TextUnit]) -> Iterator[tuple[str, UnitExtraction | Exception]]:
    for unit in units:
        said = DOCUMENTS[str(unit.document_date)]
        relationships = [one for one in said if isinstance(one, RelationshipRecord)]
        names = {name for one in relationships for name in (one.source, one.target)}
        entities = [EntityRecord(name, "PERSON" if " " in name else "ORGANIZATION", "") for name in sorted(names)]
        yield unit.id, UnitExtraction(entities, relationships, [one for one in said if isinstance(one, ClaimRecord)])


def test_a_fact_ends_when_a_text_says_so_an_office_has_a_new_holder_or_a_notice_is_withdrawn(rag: GraphRAG) -> None:
    ended = rag.sql("SELECT source AS what, valid_until FROM relationships WHERE valid_until IS NOT NULL").rows()
    ended += rag.sql(
        "SELECT description, valid_until FROM covariates WHERE valid_until IS NOT NULL AND end_date IS NULL"
    ).rows()
    assert dict(ended) == dict.fromkeys(ENDED, date(2025, 2, 1))
    held = rag.sql("SELECT subject, description FROM facts_as_of('2025-06-01')")
    assert not ENDED & {*held["subject"], *held["description"]}
    assert {"Anna Falk", "Paul Reyes", "Piet Vos"} <= {*held["subject"]}


def test_a_relationship_has_the_dates_of_the_claim_that_says_it(rag: GraphRAG) -> None:
    """Not those of another claim on the same two: an employment does not end with a sick leave."""
    dates = rag.sql("SELECT valid_from, valid_until FROM relationships WHERE source = 'Tomas Brandt'").rows()
    assert dates == [(date(2025, 3, 22), None)]


def test_an_abbreviation_in_parentheses_is_no_second_thing(rag: GraphRAG) -> None:
    named = rag.sql("SELECT title FROM entities WHERE title LIKE 'Northern%'")["title"].to_list()
    assert named == ["Northern Health Board"]


def test_what_a_filter_hides_ends_nothing(rag: GraphRAG) -> None:
    context = rag.context("local", "Who is director of Kestrel: Moira Kean, Paul Reyes?", as_of="2024-06-01")
    assert "until" not in context.text
    context = rag.context("local", "Who is director of Kestrel: Moira Kean, Paul Reyes?", documents=[*DOCUMENTS])
    assert "until 2025-02-01" in context.text
