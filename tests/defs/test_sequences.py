"""After any additions, edits and deletions in any order, the index equals one built from the present documents.

`SEQUENCES=50 python -m pytest tests/defs/test_sequences.py` tries more of them, and more orders and groupings.
"""

import os
import random
from pathlib import Path

import igraph
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag_assets.indexing.checks import failed_blocking_checks
from graphrag_assets.indexing.communities import update_communities
from graphrag_assets.indexing.embeddings import update_embeddings
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import index_batch
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.publish import update_publication
from graphrag_assets.indexing.reports import update_reports
from graphrag_assets.indexing.scan import scan
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.text import sentences
from tests.conftest import SAMPLE_INPUT

SEQUENCES = int(os.environ.get("SEQUENCES", "3"))
GROUPINGS = 5 if "SEQUENCES" in os.environ else 2
# Content of the tables without numbers and run ids.
FACTS = {
    "documents": "id, title, text, batch, source, content_hash",
    "text_units": "id, document_id, text, n_tokens, start_char, end_char, ordinal, batch",
    "entity_mentions": "* EXCLUDE (extractor)",
    "relationship_mentions": "* EXCLUDE (extractor)",
    "covariates": "* EXCLUDE (extractor)",
    "entity_aliases": "*",
    "entities": "* EXCLUDE (human_readable_id)",
    "relationships": "* EXCLUDE (human_readable_id)",
}
EMBEDDED = "SELECT kind, id, fingerprint FROM embeddings WHERE kind <> 'community_report' ORDER BY ALL"


def sentences_of_the_sample() -> list[str]:
    text = " ".join(path.read_text() for path in sorted((SAMPLE_INPUT / "2-cable-of-1857-58").iterdir()))
    return [" ".join(text[s.start : s.end].split()) for s in sentences(text) if 60 < s.end - s.start < 200]


SENTENCES = sentences_of_the_sample()
paths = st.sampled_from([f"{batch}/{name}.txt" for batch in ("a", "b", "c") for name in ("x", "y", "z")])
texts = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=8).map(" ".join)
changes = st.lists(st.tuples(paths, st.none() | texts), min_size=2, max_size=6)


def index_all(index: Index, only: list[str] | None = None) -> None:
    """Index everything that changed and publish, without Dagster."""
    found = scan(index)
    for batch in only or [*found.changed, *found.deleted]:
        index_batch(index, batch, index.models(batch), "test")
    merge_graph(index, index.models(), "test")
    update_communities(index, "test")
    update_reports(index, index.models(), "test")
    update_embeddings(index, index.models(), "test")
    update_publication(index, "test")


def apply(folder: Path, path: str, text: str | None) -> None:
    file = folder / path
    if text is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    elif file.exists():
        file.unlink()
        if not any(file.parent.iterdir()):
            file.parent.rmdir()


def index_at(root: Path, patch: pytest.MonkeyPatch) -> Index:
    patch.setenv("GRAPHRAG_DATA", str(root))
    return Index(root / "index" / "working.duckdb")


def facts(index: Index) -> dict[str, list[dict]]:
    tables = {name: f"SELECT {columns} FROM {name} ORDER BY ALL" for name, columns in FACTS.items()}
    return {name: index.working.read(query).to_dicts() for name, query in tables.items()} | {
        "embeddings": index.working.read(EMBEDDED).to_dicts()
    }


def modularity(index: Index) -> float:
    """Modularity of the top level, computed by igraph."""
    entities, edges = index.working.read_tables("entities", "relationships")
    members = index.working.read("SELECT entity_id, community FROM community_members WHERE level = 0")
    community = dict(members.iter_rows())
    place = {entity: number for number, entity in enumerate(entities["id"])}
    graph = igraph.Graph(
        n=entities.height, edges=[(place[s], place[t]) for s, t in edges.select("source_id", "target_id").iter_rows()]
    )
    numbers = {name: number for number, name in enumerate(sorted(set(community.values())))}
    labels = [numbers[community[entity]] for entity in entities["id"]]
    return graph.modularity(labels, weights=edges["weight"].to_list()) if edges.height else 0.0


@pytest.mark.extended
@settings(
    max_examples=SEQUENCES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
@given(changes=changes)
def test_after_any_changes_the_index_is_that_of_the_present_documents(changes, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
            patch.delenv(name)
        root = tmp_path_factory.mktemp("sequence")
        changing = index_at(root / "changing", patch)
        patch.setenv("GRAPHRAG_INPUT", str(root / "input"))
        (root / "input").mkdir()
        for path, text in changes:
            apply(root / "input", path, text)
            index_all(changing)
            assert failed_blocking_checks(changing) == []
        made, grown = facts(changing), modularity(changing)
        fresh = index_at(root / "fresh", patch)
        index_all(fresh)
        for name, rows in facts(fresh).items():
            assert made[name] == rows, name
        assert grown >= modularity(fresh) - 0.01 * abs(modularity(fresh)) - 1e-9
        reader = CurrentPublication(root / "changing" / "index").reader()
        assert reader.query("SELECT count(*) FROM entities").item() == len(made["entities"])


@pytest.mark.extended
def test_batches_in_any_order_give_the_same_mentions_entities_and_relationships(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        monkeypatch.delenv(name)
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
    "relationships": "source, target, description, weight, combined_degree, type",
}


@pytest.mark.extended
def test_grouping_documents_into_batches_does_not_change_the_index(tmp_path, monkeypatch):
    """Ids of documents and text units depend on their paths, so the content of the rows is compared."""
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        monkeypatch.delenv(name)
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


@pytest.mark.extended
def test_a_deleted_document_leaves_no_trace_in_tables_or_bytes(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        monkeypatch.delenv(name)
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
    assert unique.encode() not in newest.read_bytes()
    assert pl.DataFrame(never["entities"]).height > 10
