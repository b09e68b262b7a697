"""Indexes of GraphRAG 3, made with real models: imported, queried, exported again."""

import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.extras.interop.exporter import TABLES, export
from graphrag_assets.query import GraphRAG
from tests.conftest import TEST_DATA, build_once, import_once

DULCE, CAROL = (TEST_DATA / name / "graphrag-v3" for name in ("operation-dulce", "christmas-carol"))
FOLDERS = [DULCE, pytest.param(CAROL, marks=pytest.mark.extended)]

# Rows of documents, text units, entities, relationships, claims, communities, reports: in the source, in the index.
ROWS = {
    DULCE: ([1, 5, 39, 107, 41, 10, 10], [1, 5, 41, 102, 41, 10, 10]),
    CAROL: ([1, 42, 529, 978, 406, 122, 122], [1, 42, 561, 935, 381, 130, 129]),
}
QUESTIONS = {DULCE: ("Who is Taylor Cruz?", "Cruz"), CAROL: ("Who is Scrooge?", "Scrooge")}


def name_of(folder: Path) -> str:
    return folder.parent.name


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_an_index_is_imported_with_its_reports_and_answers(project, shared_folder, folder):
    imported = import_once(shared_folder / name_of(folder), folder)
    shutil.copytree(imported, project.root, symlinks=True, dirs_exist_ok=True)
    assert [pl.read_parquet(folder / f"{name}.parquet").height for name in TABLES] == ROWS[folder][0]
    assert [project.sql(f"SELECT count(*) FROM {name}")[0][0] for name in TABLES] == ROWS[folder][1]
    assert failed_blocking_checks(project.index) == []
    question, name = QUESTIONS[folder]
    with GraphRAG(project.root / "index") as rag:
        for method in (rag.local, rag.global_, rag.drift, rag.basic):
            answer = method(question)
            assert name in answer.answer, method
            assert answer.citations
    # Every community of the source keeps its report, word for word but for the numbers it cites.
    given = pl.read_parquet(folder / "community_reports.parquet")
    kept = dict(project.sql("SELECT community, full_content FROM community_reports WHERE model = 'imported'"))
    assert {number: plain(text) for number, text in kept.items()} == {
        number: plain(text) for number, text in given.select("community", "full_content").iter_rows()
    }
    project.refresh()
    assert project.index.working.read("SELECT max(number) FROM publication").item() == 1


def plain(text: str) -> str:
    """Without citations."""
    return re.sub(r" ?\[Data: [^\]]*\]", "", text)


@pytest.fixture(scope="module", params=FOLDERS, ids=name_of)
def round_trip(request, shared_folder):
    """The tables of GraphRAG 3 as they were given, and as they are exported after an import; by table and number."""
    name = name_of(request.param)
    imported = import_once(shared_folder / name, request.param)
    exported = build_once(shared_folder / f"{name}-exported", lambda to: export("graphrag", to, imported / "index"))
    return tuple(
        {
            table: {row["human_readable_id"]: row for row in pl.read_parquet(folder / f"{table}.parquet").to_dicts()}
            for table in TABLES
        }
        for folder in (request.param, exported)
    )


def same(before: dict, after: dict, *columns: str) -> bool:
    return all(before[column] == after[column] for column in columns)


def pair(row: dict) -> frozenset[str]:
    return frozenset((row["source"], row["target"]))


def test_entities_come_back_with_those_that_were_only_ends(round_trip):
    before, after = round_trip
    for number, row in before["entities"].items():
        assert same(row, after["entities"][number], "title", "type", "description", "frequency")
    titles = {row["title"] for row in before["entities"].values()}
    ends = {end for row in before["relationships"].values() for end in pair(row)}
    added = [row for number, row in after["entities"].items() if number not in before["entities"]]
    assert {row["title"] for row in added} == ends - titles
    assert {row["type"] for row in added} == {"UNKNOWN"}


def test_relationships_come_back_with_pairs_of_both_directions_merged(round_trip):
    before, after = round_trip
    pairs: dict[frozenset[str], list[dict]] = {}
    for _, row in sorted(before["relationships"].items()):
        pairs.setdefault(pair(row), []).append(row)
    assert len(after["relationships"]) == len(pairs)
    for rows in pairs.values():
        found = after["relationships"][rows[0]["human_readable_id"]]
        assert same(rows[0], found, "source", "target")
        assert found["description"] == " ".join(dict.fromkeys(row["description"] for row in rows))
        assert found["weight"] == pytest.approx(sum(row["weight"] for row in rows))
        assert len(found["text_unit_ids"]) == len({unit for row in rows for unit in row["text_unit_ids"]})


def test_communities_come_back_with_the_entities_that_joined(round_trip):
    before, after = round_trip
    titles = [{row["id"]: row["title"] for row in tables["entities"].values()} for tables in (before, after)]
    n_kept = 0
    for number, row in before["communities"].items():
        found = after["communities"][number]
        assert same(row, found, "community", "level", "parent")
        then, now = ({names[e] for e in one["entity_ids"]} for names, one in zip(titles, (row, found), strict=True))
        assert found["size"] == len(now)
        assert len(then & now) / len(then | now) >= 0.5
        n_kept += then <= now
    # Where an end of relationships has joined, one of its neighbors may have moved with it.
    assert n_kept >= len(before["communities"]) - 3
