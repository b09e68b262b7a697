"""Batches in any order and grouping give the same index, and deleted documents leave no trace in it.

Random histories are in `tests/hostile/test_history.py`. `GROUPINGS=5 python -m pytest tests/assets/test_sequences.py`
tries more orders and groupings.
"""

import os
import random
from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.extras.purge import purge
from tests.comparison import SENTENCES, facts, index_all, index_at, no_settings
from tests.conftest import SAMPLE_INPUT

GROUPINGS = int(os.environ.get("GROUPINGS", "2"))


def apply(folder: Path, path: str, text: str | None) -> None:
    file = folder / path
    if text is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    elif file.exists():
        file.unlink()
        if not any(file.parent.iterdir()):
            file.parent.rmdir()


@pytest.mark.long
def test_batches_in_any_order_give_the_same_mentions_entities_and_relationships(tmp_path, monkeypatch):
    no_settings(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))
    batches = sorted(path.name for path in SAMPLE_INPUT.iterdir())
    results = []
    for seed in range(GROUPINGS):
        index = index_at(tmp_path / str(seed), monkeypatch)
        order = random.Random(seed).sample(batches, len(batches))
        for batch in order[: seed % len(order) + 1]:  # some with a graph made in between, the rest together
            index_all(index, [batch])
        index_all(index, order[seed % len(order) + 1 :] or None)
        results.append(facts(index))
    assert all(result == results[0] for result in results)
    assert len(results[0]["entities"]) > 200


SAID = {
    "entity_mentions": "title, title_key, type, description, n_sentences",
    "relationship_mentions": "source, target, type, description, strength",
    "entities": "title, type, description, frequency, degree, types",
    "relationships": "source, target, description, weight, type",
}


@pytest.mark.long
def test_grouping_documents_into_batches_does_not_change_the_index(tmp_path, monkeypatch):
    """Ids of documents and text units depend on their paths, so the content of the rows is compared."""
    no_settings(monkeypatch)
    documents = sorted(path for path in SAMPLE_INPUT.rglob("*") if path.suffix in {".md", ".txt"})
    results = []
    for seed in range(GROUPINGS):
        chance, root = random.Random(seed), tmp_path / str(seed)
        monkeypatch.setenv("GRAPHRAG_INPUT", str(root / "input"))
        index = index_at(root, monkeypatch)
        for document in documents:
            apply(root / "input", f"batch-{chance.randrange(2 + seed)}/{document.name}", document.read_text())
        batches = sorted(path.name for path in (root / "input").iterdir())
        for batch in chance.sample(batches, len(batches)):
            index_all(index, [batch])
        tables = {name: f"SELECT {columns} FROM {name} ORDER BY ALL" for name, columns in SAID.items()}
        results.append({name: index.working.read(query).to_dicts() for name, query in tables.items()})
    assert all(result == results[0] for result in results)
    assert len(results[0]["entities"]) > 200


@pytest.mark.long
def test_a_deleted_document_leaves_no_trace_in_tables_or_bytes(tmp_path, monkeypatch):
    no_settings(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_INPUT", str(tmp_path / "input"))
    index = index_at(tmp_path, monkeypatch)
    for place in range(6):
        apply(tmp_path / "input", f"a/{place}.txt", " ".join(SENTENCES[place * 5 : place * 5 + 5]))
    index_all(index)
    never = facts(index)
    unique = "Xylokarpion"
    apply(
        tmp_path / "input",
        "a/secret.txt",
        f"Cyrus Field sent {unique} to Valentia in 1866. {unique} met Samuel Canning.",
    )
    index_all(index)
    newest = tmp_path / "index" / "graphrag.duckdb"
    assert unique.encode() in newest.read_bytes()
    apply(tmp_path / "input", "a/secret.txt", None)
    index_all(index)
    assert facts(index) == never
    for table in index.working.read("SELECT table_name FROM duckdb_tables()")["table_name"]:
        found = index.working.read(
            f'SELECT count(*) FROM "{table}" t WHERE t::VARCHAR ILIKE $word', {"word": f"%{unique}%"}
        )
        assert found.item() == 0, table
    purge(index)  # the publication may have begun as a copy of the last one
    assert unique.encode() not in newest.read_bytes()
    assert pl.DataFrame(never["entities"]).height > 10
