"""Only new texts are embedded; without an embedding model there are no vectors."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from graphrag_assets.assets import embeddings
from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.assets.embeddings import embed_texts
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.scan import retry_given_up
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.errors import StoreError
from tests.comparison import SENTENCES

ROWS = "SELECT kind, id, fingerprint, model, vector FROM embeddings ORDER BY ALL"
# Its title, and the beginning of its description.
ENTITY_TEXTS = "SELECT 2 * count(*) FROM entities WHERE degree > 0"


@pytest.fixture
def index(start_with) -> Index:
    parts = {"a/a.md": SENTENCES[:12], "a/b.md": SENTENCES[12:24], "b/c.md": SENTENCES[24:36]}
    return start_with(
        {name: " ".join(part) for name, part in parts.items()}, chunk_size="60", embedding_model="onnx:bge-small"
    ).index


def embedding(index: Index, texts: list[str]) -> IndexingModels:
    models = index.models()

    def embed(given: Sequence[str]) -> np.ndarray:
        texts.extend(given)
        return models.embed(given)

    return replace(models, embed=embed)


def test_nothing_is_embedded_or_written_without_a_change(index) -> None:
    texts: list[str] = []
    changes = embed_texts.update(index, "again", embedding(index, texts)).changes["embeddings"]
    assert (texts, changes.inserted, changes.deleted) == ([], 0, 0)
    assert changes.rows == index.working.read(ROWS).height


def test_a_text_under_another_heading_is_embedded_again(index) -> None:
    with index.working.transaction() as connection:
        connection.execute("UPDATE text_units SET context = 'At sea' WHERE id = (SELECT min(id) FROM text_units)")
    texts: list[str] = []
    embed_texts.update(index, "again", embedding(index, texts))
    assert [text.partition("\n")[0] for text in texts] == ["At sea"]


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


def test_vectors_made_in_parts_equal_those_made_in_one_also_after_a_crash(index, monkeypatch) -> None:
    in_one = index.working.read(ROWS)
    with index.working.transaction() as connection:  # a vector of nothing, one of another text, and others to be made
        connection.execute(
            "UPDATE embeddings SET id = 'nothing', fingerprint = 'x' WHERE id = (SELECT min(id) FROM embeddings)"
        )
        connection.execute("UPDATE embeddings SET fingerprint = 'other' WHERE kind = 'entity'")
    monkeypatch.setattr(embeddings, "ROWS_PER_PART", 5)
    texts: list[str] = []
    models = embedding(index, texts)

    def crash(given: Sequence[str]) -> np.ndarray:
        if len(texts) > 10:
            raise KeyboardInterrupt
        return models.embed(given)

    with pytest.raises(KeyboardInterrupt):
        embed_texts.update(index, "crash", replace(models, embed=crash))
    embed_texts.update(index, "parts", models)
    n_texts = index.working.read(ENTITY_TEXTS).item()
    assert n_texts <= len(texts) == len(set(texts)) <= n_texts + 1
    assert_frame_equal(index.working.read(ROWS), in_one, abs_tol=1e-6)


def test_a_model_with_vectors_of_another_length_embeds_all_texts_in_the_next_run(index) -> None:
    embedded = index.working.read("SELECT kind, id FROM embeddings ORDER BY ALL")
    with index.working.transaction() as connection:
        connection.execute("UPDATE embeddings SET fingerprint = 'other' WHERE kind = 'entity'")
    shorter = replace(index.models(), embed=lambda texts: index.models().embed(texts)[:, :100])
    with pytest.raises(StoreError, match="of 100 numbers, and those of the index had 384: they are removed"):
        embed_texts.update(index, "refused", shorter)
    embed_texts.update(index, "again", shorter)
    assert index.working.read("SELECT kind, id FROM embeddings WHERE len(vector) = 100 ORDER BY ALL").equals(embedded)
    assert index.working.read(ROWS).height == embedded.height


def test_a_text_that_the_model_does_not_take_is_an_error_and_not_sent_again(index) -> None:
    models = index.models()
    refused, *_ = index.working.read("SELECT id FROM entities WHERE degree > 0 ORDER BY degree DESC, id").rows()[0]
    with index.working.transaction() as connection:
        connection.execute(f"UPDATE entities SET description = 'Bad text.' WHERE id = '{refused}'")

    def embed(texts: Sequence[str]) -> np.ndarray:
        models.embedding_errors.update({text: "it is bad" for text in texts if "Bad text." in text})
        vectors = models.embed(texts)
        vectors[["Bad text." in text for text in texts]] = np.nan
        return vectors

    embed_texts.update(index, "refused", replace(models, embed=embed))
    errors = "SELECT source, error FROM index_errors WHERE stage = 'embed'"
    assert index.working.read(errors).rows() == [(refused, "it is bad")]
    assert [check.name for check in failed_blocking_checks(index) if check.asset == "embeddings"] == []
    texts: list[str] = []
    embed_texts.update(index, "not again", embedding(index, texts))
    assert (texts, index.working.read(errors).height) == ([], 1)
    retry_given_up(index)
    embed_texts.update(index, "again", embedding(index, texts))
    assert len(texts) == 3  # the entity's two texts, and that of the report about it
    assert index.working.read(errors).is_empty()


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
    removed = embed_texts.update(unset, "none", unset.models())
    assert (removed.metadata["embedded"], removed.changes["embeddings"].deleted) == (0, vectors.height)
    assert index.working.read(ROWS).is_empty()
    assert index.working.read("FROM index_errors WHERE stage = 'embed'").is_empty()
    embed_texts.update(unset, "none again", unset.models())
    assert index.working.read(ROWS).is_empty()
    embed_texts.update(index, "with a model again", index.models())
    assert index.working.read(ROWS).equals(vectors)
