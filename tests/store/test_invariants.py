"""Each invariant holds of a real index and fails on one that was broken on purpose."""

import shutil

import pytest

from graphrag_assets.store.invariants import INVARIANTS
from graphrag_assets.store.working import WorkingDatabase

BREAK = {
    "keys_are_unique": "INSERT INTO entities SELECT * FROM entities LIMIT 1",
    "relationship_ends_are_entities": "UPDATE relationships SET target_id = 'nobody' WHERE human_readable_id = 0",
    "references_exist": "UPDATE entities SET text_unit_ids = ['nowhere'] WHERE human_readable_id = 0",
    "one_community_per_entity_and_level": "DELETE FROM community_members WHERE level = 0 AND entity_id = (SELECT min(id) FROM entities)",
    "children_lie_within_parents": "UPDATE communities SET children = [] WHERE len(children) > 0",
    "nothing_stems_from_a_gone_document": "DELETE FROM documents WHERE batch = '1-beginnings'",
    "every_community_has_a_report": "DELETE FROM community_reports WHERE community = 0",
    "text_units_have_mentions": "DELETE FROM entity_mentions WHERE text_unit_id = (SELECT min(text_unit_id) FROM entity_mentions)",
    "entities_have_descriptions": "UPDATE entities SET description = '' WHERE human_readable_id = 0",
    "no_hub_dominates": "INSERT INTO text_units BY NAME SELECT t.* REPLACE (t.id || copy AS id) FROM text_units t, (SELECT unnest([1, 2, 3]) AS copy); UPDATE entities SET frequency = 200 WHERE human_readable_id = 0",
    "titles_are_distinct": "INSERT INTO entities BY NAME SELECT * REPLACE ('other' AS id, title_key || '.' AS title_key) FROM entities WHERE human_readable_id = 0",
    "claims_are_about_entities": "UPDATE covariates SET subject_key = 'nobody at all'",
    "citations_resolve": "UPDATE citations SET cited_id = NULL WHERE human_readable_id = 0",
    "documents_have_a_yield": "DELETE FROM text_units WHERE document_id = (SELECT min(id) FROM documents)",
    "entities_and_relationships_stand_in_text_units": "UPDATE entities SET text_unit_ids = NULL WHERE human_readable_id = 0",
    "everything_searchable_has_an_embedding": "DELETE FROM embeddings WHERE kind = 'entity' AND id = (SELECT min(id) FROM entities)",
    "text_units_are_extracted": "UPDATE text_units SET extractor = NULL WHERE batch = '1-beginnings'",
}


@pytest.fixture
def copy(sample_index, tmp_path) -> WorkingDatabase:
    shutil.copy(sample_index.root / "index" / "working.duckdb", tmp_path / "working.duckdb")
    return WorkingDatabase(tmp_path / "working.duckdb")


MORE = [
    ("relationship_ends_are_entities", "UPDATE relationships SET source_id = NULL WHERE human_readable_id = 0"),
    ("relationship_ends_are_entities", "UPDATE relationships SET source = 'Nobody' WHERE human_readable_id = 0"),
    ("nothing_stems_from_a_gone_document", "UPDATE documents SET batch = 'unknown' WHERE batch = '1-beginnings'"),
    ("nothing_stems_from_a_gone_document", "UPDATE citations SET report_id = 'gone' WHERE human_readable_id = 0"),
    ("citations_resolve", "UPDATE citations SET cited_id = 'gone' WHERE human_readable_id = 0"),
]


def offending(working: WorkingDatabase, name: str) -> int:
    (query,) = (invariant.query for invariant in INVARIANTS if invariant.name == name)
    return working.read(query).height


def test_there_is_a_broken_index_for_every_invariant():
    assert set(BREAK) == {invariant.name for invariant in INVARIANTS}


def test_every_blocking_invariant_holds_of_the_sample_corpus(copy):
    assert {i.name: offending(copy, i.name) for i in INVARIANTS if i.blocking and offending(copy, i.name)} == {}


@pytest.mark.parametrize(("name", "corruption"), [*BREAK.items(), *MORE])
def test_an_invariant_finds_what_breaks_it(copy, name, corruption):
    before = offending(copy, name)
    with copy.transaction() as connection:
        connection.execute(corruption)
    assert offending(copy, name) > before


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda i: i.name)
def test_every_invariant_says_what_holds_and_what_to_do(invariant):
    assert invariant.statement.endswith(".")
    assert invariant.cure.endswith(".")
