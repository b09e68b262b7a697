"""Embeddings of changed rows alone are those of all rows; without an embedding model there are none."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from graphrag_assets.indexing import embeddings
from graphrag_assets.indexing.embeddings import update_embeddings
from graphrag_assets.indexing.index import Index
from graphrag_assets.store import schema
from graphrag_assets.store.working import replace_rows
from tests.comparison import SENTENCES, index_all

ROWS = "SELECT kind, id, fingerprint, model, vector FROM embeddings ORDER BY ALL"
# Its title, and the beginning of its description.
ENTITY_TEXTS = "SELECT 2 * count(*) FROM entities WHERE degree > 0"


@pytest.fixture
def index(start_with) -> Index:
    parts = {"a/a.md": SENTENCES[:12], "a/b.md": SENTENCES[12:24], "b/c.md": SENTENCES[24:36]}
    return start_with(
        {name: " ".join(part) for name, part in parts.items()}, chunk_size="60", embedding_model="onnx:bge-small"
    ).index


def write(index: Index, name: str, text: str) -> None:
    file = Path(index.settings.input_folder) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def texts_looked_at(index: Index, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []
    fingerprinted = embeddings.embedding_texts

    def counted(*given):
        texts = fingerprinted(*given)
        seen.append(texts.rows.height)
        return texts

    monkeypatch.setattr(embeddings, "embedding_texts", counted)
    return seen


def clear_marks(index: Index) -> None:
    with index.working.transaction() as connection:
        connection.execute("DELETE FROM change_marks WHERE reader = 'embed_texts'")


@pytest.mark.long
def test_an_edit_looks_at_the_texts_of_changed_rows_and_gives_the_vectors_of_all(index, monkeypatch) -> None:
    seen = texts_looked_at(index, monkeypatch)
    write(index, "a/a.md", " ".join([*SENTENCES[:6], "Cyrus Field was there.", *SENTENCES[7:12]]))
    (Path(index.settings.input_folder) / "b/c.md").unlink()
    index_all(index)
    incremental = index.working.read(ROWS)
    clear_marks(index)
    assert update_embeddings(index, index.models(), "all").n_embedded == 0
    assert index.working.read(ROWS).equals(incremental)
    assert 0 < seen[0] < seen[1] == incremental.height


@pytest.mark.extended
def test_nothing_is_looked_at_without_a_change(index, monkeypatch) -> None:
    seen = texts_looked_at(index, monkeypatch)
    update_embeddings(index, index.models(), "again")
    assert seen == [0]


@pytest.mark.extended
def test_the_vector_of_a_report_follows_its_entities_where_the_report_stays(index) -> None:
    before = {row["id"]: row["vector"] for row in index.working.read(ROWS).to_dicts()}
    of_three = "SELECT unnest(entity_ids) FROM communities WHERE size = 3"
    with index.working.transaction() as connection:
        edited = connection.sql(f"FROM entities WHERE id IN ({of_three}) ORDER BY id LIMIT 1").pl()
        edited = edited.with_columns(description=pl.lit("A whale with another description."))
        replace_rows(connection, schema.ENTITIES, edited, "id", edited["id"])
    update_embeddings(index, index.models(), "again")
    incremental = index.working.read(ROWS)
    assert {row["kind"] for row in incremental.to_dicts() if row["vector"] != before[row["id"]]} == {
        "entity",
        "community_report",
    }
    clear_marks(index)
    update_embeddings(index, index.models(), "all")
    assert index.working.read(ROWS).equals(incremental)


def test_half_of_a_report_is_its_summary_and_the_other_half_its_entities(index) -> None:
    read, embed = index.working.read, index.models().embed
    vectors = {row["id"]: np.array(row["vector"]) for row in read(ROWS).to_dicts()}
    made = read(
        "SELECT r.id, r.title, r.summary, entity_ids FROM community_reports r JOIN communities USING (community) "
        "WHERE len(entity_ids) BETWEEN 2 AND 10 ORDER BY ALL"
    ).rows()
    for report, title, summary, members in made:
        of_entities = np.sum([vectors[member] for member in members], axis=0)
        summaries = len(members) * embed([f"{title}\n\n{summary}"])[0] if len(members) > 2 else 0
        expected = of_entities + summaries
        assert vectors[report] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-5)
    assert {len(row[-1]) for row in made} > {2, 3}


@pytest.mark.long
def test_vectors_that_someone_deleted_are_made_again(index) -> None:
    before = index.working.read(ROWS)
    with index.working.transaction() as connection:
        connection.execute("DELETE FROM embeddings WHERE kind = 'entity'")
    update_embeddings(index, index.models(), "again")
    assert index.working.read(ROWS).equals(before)


def test_vectors_made_in_parts_equal_those_made_in_one(index, monkeypatch) -> None:
    in_one = index.working.read(ROWS)
    with index.working.transaction() as connection:  # a vector of nothing, one of another text, and others to be made
        connection.execute("UPDATE embeddings SET id = 'nothing' WHERE id = (SELECT min(id) FROM embeddings)")
        connection.execute("UPDATE embeddings SET fingerprint = 'other' WHERE kind = 'entity'")
    clear_marks(index)
    monkeypatch.setattr(embeddings, "ROWS_PER_PART", 5)
    seen = texts_looked_at(index, monkeypatch)
    updated = update_embeddings(index, index.models(), "parts")
    assert len(seen) > 3
    assert updated.n_embedded == index.working.read(ENTITY_TEXTS).item()
    assert index.working.read(ROWS).equals(in_one)


def test_a_model_with_vectors_of_another_length_embeds_all_parts_again(index, monkeypatch) -> None:
    embedded = index.working.read("SELECT kind, id FROM embeddings ORDER BY ALL")
    with index.working.transaction() as connection:
        connection.execute("UPDATE embeddings SET fingerprint = 'other' WHERE kind = 'entity'")
    clear_marks(index)
    monkeypatch.setattr(embeddings, "ROWS_PER_PART", 5)
    shorter = replace(index.models(), embed=lambda texts: index.models().embed(texts)[:, :100])
    update_embeddings(index, shorter, "parts")
    assert index.working.read("SELECT kind, id FROM embeddings WHERE len(vector) = 100 ORDER BY ALL").equals(embedded)
    assert index.working.read(ROWS).height == embedded.height


def test_without_a_model_there_are_no_vectors_and_their_errors_are_gone(index, monkeypatch) -> None:
    vectors = index.working.read(ROWS)
    with index.working.transaction() as connection:
        connection.execute(
            "INSERT INTO index_errors BY NAME SELECT id AS source, batch, 'embed' AS stage, 'too long' AS error, "
            "'2026-01-01' AS first_seen FROM text_units LIMIT 1"
        )
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "")
    unset = Index(index.database)
    assert unset.models().embedding_model == ""
    removed = update_embeddings(unset, unset.models(), "none")
    assert (removed.n_embedded, removed.updated.changes["embeddings"].deleted) == (0, vectors.height)
    assert index.working.read(ROWS).is_empty()
    assert index.working.read("FROM index_errors WHERE stage = 'embed'").is_empty()
    update_embeddings(unset, unset.models(), "none again")
    assert index.working.read(ROWS).is_empty()
    update_embeddings(index, index.models(), "with a model again")
    assert index.working.read(ROWS).equals(vectors)
