"""Vectors are found wherever a generation of GraphRAG keeps them."""

import polars as pl
import pytest

from graphrag_assets.interop.vectors import read_vectors


def test_vectors_of_all_places_are_one_table(tmp_path):
    rows = pl.DataFrame({"id": ["a", "b"], "embedding": [[1.0, 0.0], [0.0, 1.0]]})
    rows.write_parquet(tmp_path / "embeddings.text_unit_text.parquet")
    rows.rename({"embedding": "vector"}).write_parquet(tmp_path / "vectors.text_unit_text.parquet")
    entities = pl.DataFrame({"id": ["e", "f"], "description_embedding": [[0.5, 0.5], None]})
    found = read_vectors(tmp_path, entities)
    assert found.select("kind", "id").rows() == [("text_unit", "a"), ("text_unit", "b"), ("entity", "e")]
    assert found["vector"].to_list() == [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def test_vectors_of_a_lancedb_store_are_read(tmp_path):
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    (tmp_path / "output").mkdir()
    (tmp_path / "lancedb").mkdir()
    table = pl.DataFrame({"id": ["a"], "vector": [[1.0, 2.0]]}).to_arrow()
    lance.write_dataset(table, str(tmp_path / "lancedb" / "default-entity-description.lance"))
    found = read_vectors(tmp_path / "output", None)
    assert found.rows() == [("entity", "a", [1.0, 2.0])]
