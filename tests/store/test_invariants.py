"""Invariants hold for a real index. Broken indexes are in tests/assets/test_broken_indexes.py."""

import re
import shutil

import pytest

from graphrag_assets.assets.checks import CHECKS
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.invariants import INVARIANTS
from graphrag_assets.store.schema import WORKING


@pytest.fixture
def copy(sample_index, tmp_path) -> IndexDatabase:
    shutil.copy(sample_index.root / "index" / "working.duckdb", tmp_path / "working.duckdb")
    return IndexDatabase(tmp_path / "working.duckdb")


BREAKS = [
    ("relationship_ends_are_entities", "UPDATE relationships SET source_id = NULL WHERE human_readable_id = 0"),
    ("relationship_ends_are_entities", "UPDATE relationships SET source = 'Nobody' WHERE human_readable_id = 0"),
    ("nothing_stems_from_a_gone_document", "UPDATE documents SET batch = 'unknown' WHERE batch = '1-beginnings'"),
    ("nothing_stems_from_a_gone_document", "UPDATE citations SET report_id = 'gone' WHERE human_readable_id = 0"),
    (
        "nothing_stems_from_a_gone_document",
        "INSERT INTO index_errors BY NAME SELECT 'gone' AS batch, 'extract' AS stage",
    ),
    ("communities_have_the_members_listed", "UPDATE communities SET entity_ids = entity_ids[2:] WHERE community = 0"),
    (
        "children_lie_within_parents",
        "UPDATE communities SET entity_ids = list_append(entity_ids, 'x') WHERE parent <> -1",
    ),
    ("children_lie_within_parents", "UPDATE communities SET parent = 999999 WHERE parent <> -1"),
    (
        "vectors_are_comparable",
        "INSERT INTO embeddings BY NAME SELECT 'entity' AS kind, id, 'a model' AS model, "
        "[1, 0, 0, 0][:1 + human_readable_id % 2] AS vector FROM entities",
    ),
    ("citations_resolve", "UPDATE citations SET cited_id = 'gone' WHERE human_readable_id = 0"),
]


def offending(working: IndexDatabase, name: str) -> int:
    (query,) = (invariant.find for invariant in INVARIANTS if invariant.name == name)
    return working.read(query).height


def test_every_blocking_invariant_holds_of_the_sample_corpus(copy):
    assert {i.name: offending(copy, i.name) for i in INVARIANTS if i.blocking and offending(copy, i.name)} == {}


@pytest.mark.parametrize(("name", "corruption"), BREAKS)
def test_invariant_finds_violating_rows(copy, name, corruption):
    before = offending(copy, name)
    with copy.transaction() as connection:
        connection.execute(corruption)
    assert offending(copy, name) > before


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda i: i.name)
def test_every_invariant_has_a_statement_and_a_remedy(invariant):
    assert invariant.statement.endswith(".")
    assert invariant.remedy.endswith(".")


def test_every_check_names_the_tables_that_it_reads(copy):
    with copy.connect() as connection:
        connection.execute("PRAGMA disable_optimizer")  # which leaves out empty tables
        for check in CHECKS:
            if isinstance(check.find, str):
                ((_, plan),) = connection.execute(f"EXPLAIN (FORMAT json) {check.find}").fetchall()
                assert set(check.reads) == set(re.findall(r'"Table": "working.main.(?:\\")?(\w+)', plan)), check.name
    assert {name for check in CHECKS for name in check.reads} <= {table.name for table in WORKING}
