"""Indexes of GraphRAG 1 to 3, made with real models: imported, queried, exported again."""

import re
import shutil
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.extras.interop.exporter import TABLES, export
from graphrag_assets.query import GraphRAG
from tests.conftest import TEST_DATA, build_once, import_once

DULCE, CAROL = TEST_DATA / "operation-dulce", TEST_DATA / "christmas-carol" / "graphrag-v3"
V3 = [DULCE / "graphrag-v3", CAROL]

# Rows in and out of documents, text units, entities, relationships, claims, communities, reports.
ROWS = {
    DULCE / "graphrag-v1": ([2, 38, 373, 812, 178, 72, 72], [2, 38, 373, 765, 164, 78, 76]),
    DULCE / "graphrag-v2": ([1, 5, 18, 54, 17, 2, 2], [1, 5, 18, 47, 16, 3, 3]),
    DULCE / "graphrag-v3": ([1, 5, 39, 107, 41, 10, 10], [1, 5, 41, 102, 41, 10, 10]),
    CAROL: ([1, 42, 529, 978, 406, 122, 122], [1, 42, 561, 935, 381, 130, 129]),
}
QUESTIONS = {"operation-dulce": "Who is Taylor Cruz?", "christmas-carol": "Who is Scrooge?"}
NAMES = {"operation-dulce": "Cruz", "christmas-carol": "Scrooge"}


def name_of(folder: Path) -> str:
    return f"{folder.parent.name}-{folder.name}"


@pytest.mark.parametrize(
    "folder",
    [pytest.param(folder, marks=[] if folder.name == "graphrag-v2" else pytest.mark.long) for folder in ROWS],
    ids=name_of,
)
def test_every_generation_is_imported_and_answers(project, shared_folder, folder):
    imported = import_once(shared_folder / name_of(folder), folder)
    shutil.copytree(imported, project.root, symlinks=True, dirs_exist_ok=True)
    rows = project.sql("SELECT step, table_name, n FROM operations.import_counts WHERE what = 'rows'")
    counts = {(step, table): n for step, table, n in rows}
    assert [counts["read", table] for table in TABLES] == ROWS[folder][0]
    assert [counts["written", table] for table in TABLES] == ROWS[folder][1]
    corpus = folder.parent.name
    rag = GraphRAG(project.root / "index")
    for method in (rag.local, rag.global_, rag.drift, rag.basic):
        answer = method(QUESTIONS[corpus])
        assert NAMES[corpus] in answer.answer, method
        assert answer.citations
    # Every community of the source keeps its report, word for word but for the numbers it cites.
    given = pl.read_parquet(next(folder.glob("*community_reports.parquet")))
    kept = dict(project.sql("SELECT community, full_content FROM community_reports WHERE model = 'imported'"))
    assert {number: plain(text) for number, text in kept.items()} == {
        int(number): plain(text) for number, text in given.select("community", "full_content").iter_rows()
    }
    project.refresh()
    assert project.index.working.read("SELECT max(number) FROM publications").item() == 1


def plain(text: str) -> str:
    """Without citations."""
    return re.sub(r" ?\[Data: [^\]]*\]", "", text)


@cache
def given(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}


@pytest.fixture(scope="module", params=V3, ids=name_of)
def round_trip(request, shared_folder):
    """The tables of GraphRAG 3 as they were given, and as they are exported after an import."""
    name = name_of(request.param)
    imported = import_once(shared_folder / name, request.param)
    exported = build_once(shared_folder / f"{name}-exported", lambda to: export("graphrag", to, imported / "index"))
    return given(request.param), {name: pl.read_parquet(exported / f"{name}.parquet") for name in TABLES}


def by_id(frame: pl.DataFrame) -> dict[str, dict]:
    return {row["id"]: row for row in frame.iter_rows(named=True)}


def survivors(before: dict[str, pl.DataFrame]) -> dict[str, str]:
    """Relationship id to the id of the first relationship of its pair, in either direction."""
    first: dict[frozenset, str] = {}
    rows = before["relationships"].sort("human_readable_id").select("id", "source", "target").iter_rows()
    return {row: first.setdefault(frozenset((source, target)), row) for row, source, target in rows}


def phantoms(before: dict[str, pl.DataFrame]) -> set[str]:
    ends = set(before["relationships"]["source"]) | set(before["relationships"]["target"])
    return ends - set(before["entities"]["title"])


def test_documents_come_back(round_trip):
    before, after = round_trip
    columns = ["id", "human_readable_id", "title", "text", "creation_date"]
    assert after["documents"].select(columns).equals(before["documents"].select(columns))
    units = after["text_units"].sort("human_readable_id")["id"].to_list()
    assert after["documents"]["text_unit_ids"].to_list() == [units]


def test_text_units_come_back_without_the_metadata_put_before_them(round_trip):
    before, after = round_trip
    first, gone = survivors(before), set(before["covariates"]["id"]) - set(after["covariates"]["id"])
    old, new = by_id(before["text_units"]), by_id(after["text_units"])
    added = set(after["entities"]["id"]) - set(before["entities"]["id"])
    assert list(old) == list(new)
    for row_id, row in old.items():
        assert new[row_id]["human_readable_id"] == row["human_readable_id"]
        assert new[row_id]["document_id"] == row["document_id"]
        assert new[row_id]["text"] == re.sub(r"^title: [^\n]*\.\n", "", row["text"])
        assert (new[row_id]["n_tokens"] == row["n_tokens"]) == (new[row_id]["text"] == row["text"])
        assert [e for e in new[row_id]["entity_ids"] if e not in added] == row["entity_ids"]
        assert set(new[row_id]["relationship_ids"]) == {first[r] for r in row["relationship_ids"]}
        assert new[row_id]["covariate_ids"] == [c for c in row["covariate_ids"] if c not in gone]


def test_entities_come_back_with_those_that_were_only_ends(round_trip):
    before, after = round_trip
    known = after["entities"].join(before["entities"], on="id", how="semi")
    assert known.equals(before["entities"].select(known.columns))
    added = after["entities"].join(before["entities"], on="id", how="anti")
    assert set(added["title"]) == phantoms(before)
    assert set(added["type"]) == {"UNKNOWN"}


def test_relationships_come_back_with_pairs_of_both_directions_merged(round_trip):
    before, after = round_trip
    first, new = survivors(before), by_id(after["relationships"])
    assert set(new) == set(first.values())
    order = dict(before["text_units"].select("id", "human_readable_id").iter_rows())
    same: dict[str, list[dict]] = {}
    for row in before["relationships"].sort("human_readable_id").iter_rows(named=True):
        same.setdefault(first[row["id"]], []).append(row)
    for row_id, rows in same.items():
        found = dict(new[row_id])
        assert found.pop("description") == " ".join(dict.fromkeys(row["description"] for row in rows))
        assert found.pop("weight") == sum(row["weight"] for row in rows)
        units = {unit for row in rows for unit in row["text_unit_ids"]}
        assert found.pop("text_unit_ids") == sorted(units, key=order.__getitem__)
        assert found == {name: rows[0][name] for name in found}


def test_claims_come_back_but_for_the_garbage(round_trip):
    before, after = round_trip
    old, new = by_id(before["covariates"]), by_id(after["covariates"])
    assert {row for row in old if row not in new} == {i for i, row in old.items() if row["description"] is None}
    for row_id, row in new.items():
        given_row = old[row_id]
        status = given_row["status"] if given_row["status"] != "NONE" else "SUSPECTED"
        assert row == {**given_row, "status": status, "subject_id": given_row["subject_id"].upper()}


def test_communities_come_back_with_the_entities_that_joined(round_trip):
    before, after = round_trip
    first, old, new = survivors(before), by_id(before["communities"]), by_id(after["communities"])
    added = set(after["entities"]["id"]) - set(before["entities"]["id"])
    named = {title: row_id for row_id, title in after["entities"].select("id", "title").iter_rows()}
    ends = {i: {named[s], named[t]} for i, s, t in after["relationships"].select("id", "source", "target").iter_rows()}
    relationships = by_id(after["relationships"])
    assert set(old) <= set(new)
    for row_id, row in old.items():
        found = new[row_id]
        for column in ("human_readable_id", "community", "level", "parent", "children", "title"):
            assert found[column] == row[column]
        loners = {e for e in found["entity_ids"] if e not in row["entity_ids"]}
        assert set(row["entity_ids"]) <= set(found["entity_ids"])
        # Who joined is no entity in the source, or in no community of that level.
        assert loners <= added | (
            set(before["entities"]["id"])
            - set(before["communities"].filter(pl.col("level") == row["level"])["entity_ids"].explode())
        )
        assert found["size"] == len(found["entity_ids"])
        assert set(found["relationship_ids"]) == {i for i, both in ends.items() if both <= set(found["entity_ids"])}
        kept = {first[r] for r in row["relationship_ids"]}
        units = {unit for r in found["relationship_ids"] for unit in relationships[r]["text_unit_ids"]}
        assert set(found["text_unit_ids"]) == units
        assert len(found["text_unit_ids"]) == len(units)
        if kept == set(found["relationship_ids"]):
            assert set(row["text_unit_ids"]) <= units
        # An end that was no entity has joined the community of its strongest relationship, and no other.
        assert {r for r in kept if not ends[r] & added} <= set(found["relationship_ids"])
        assert all(ends[r] & (added | loners) or r in kept for r in found["relationship_ids"])


def test_reports_come_back_with_citations_of_existing_rows(round_trip):
    before, after = round_trip
    old, new = by_id(before["community_reports"]), by_id(after["community_reports"])
    assert set(old) <= set(new)
    columns = set(next(iter(old.values()))) - {"period", "size"}
    changed = 0
    for row_id, row in old.items():
        found = {name: new[row_id][name] for name in columns}
        if found != {name: row[name] for name in columns}:
            changed += 1
            assert plain(found["full_content"]) == plain(row["full_content"])
    assert changed == {10: 0, 122: 7}[len(old)]
