"""Invariants hold for a real index. Broken indexes are in tests/defs/test_broken_indexes.py."""

import shutil

import pytest

from graphrag_assets.store.change_log import LOGGED, changes_since_mark, last_revision, log_changes, set_mark
from graphrag_assets.store.invariants import INVARIANTS, find_touched, over_all, over_touched
from graphrag_assets.store.schema import WORKING
from graphrag_assets.store.working import WorkingDatabase

BLOCKING = {invariant.name for invariant in INVARIANTS if invariant.blocking}


@pytest.fixture
def copy(sample_index, tmp_path) -> WorkingDatabase:
    shutil.copy(sample_index.root / "index" / "working.duckdb", tmp_path / "working.duckdb")
    return WorkingDatabase(tmp_path / "working.duckdb")


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
    (
        "titles_are_distinct",
        "INSERT INTO entities BY NAME SELECT * REPLACE ('o' AS id, 'çyrus field' AS title_key) FROM entities WHERE title_key = 'cyrus field'",
    ),
    ("citations_resolve", "UPDATE citations SET cited_id = 'gone' WHERE human_readable_id = 0"),
]


def offending(working: WorkingDatabase, name: str) -> int:
    (query,) = (invariant.find for invariant in INVARIANTS if invariant.name == name)
    return working.read(over_all(query)).height


def test_every_blocking_invariant_holds_of_the_sample_corpus(copy):
    assert {i.name: offending(copy, i.name) for i in INVARIANTS if i.blocking and offending(copy, i.name)} == {}


@pytest.mark.parametrize(("name", "corruption"), BREAKS)
def test_invariant_finds_violating_rows(copy, name, corruption):
    before = offending(copy, name)
    with copy.transaction() as connection:
        connection.execute(corruption)
    assert offending(copy, name) > before


@pytest.mark.parametrize(("name", "corruption"), [b for b in BREAKS if b[0] in BLOCKING])
def test_the_rows_that_a_change_touches_are_enough_to_find_what_it_breaks(copy, name, corruption):
    (query,) = (invariant.find for invariant in INVARIANTS if invariant.name == name)
    with copy.transaction() as connection:
        set_mark(connection, "checks", LOGGED, last_revision(connection))
        logged = [table for table in WORKING if table.name in LOGGED]
        for table in logged:
            connection.execute(f"CREATE TEMP TABLE before_{table.name} AS FROM {table.name}")
        connection.execute(corruption)
        for table in logged:
            differing = "((FROM {0} EXCEPT FROM {1}) UNION ALL (FROM {1} EXCEPT FROM {0}))"
            log_changes(connection, table, differing.format(f"before_{table.name}", table.name))
        changed = changes_since_mark(connection, "checks", LOGGED)
        assert changed is not None
        find_touched(connection, changed, [query])
        assert connection.sql(over_touched(query)).fetchall()


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda i: i.name)
def test_every_invariant_has_a_statement_and_a_remedy(invariant):
    assert invariant.statement.endswith(".")
    assert invariant.remedy.endswith(".")
