"""Vectors are found wherever a generation of GraphRAG keeps them."""

from collections import Counter

import polars as pl
import pytest

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.vectors import of_one_length, read_vectors


def test_vectors_of_all_places_are_one_table(tmp_path):
    rows = pl.DataFrame({"id": ["a", "b"], "embedding": [[1.0, 0.0], [0.0, 1.0]]})
    rows.write_parquet(tmp_path / "embeddings.text_unit_text.parquet")
    rows.rename({"embedding": "vector"}).write_parquet(tmp_path / "vectors.text_unit_text.parquet")
    entities = pl.DataFrame({"id": ["e", "f"], "vector": [[0.5, 0.5], None]})
    entities.write_parquet(tmp_path / "embeddings.entity_description.parquet")
    found = read_vectors(tmp_path, Counter())
    assert found.select("kind", "id").rows() == [("text_unit", "a"), ("text_unit", "b"), ("entity", "e")]
    assert found["vector"].to_list() == [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def test_vectors_of_a_lancedb_store_are_read(tmp_path):
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    (tmp_path / "output").mkdir()
    (tmp_path / "lancedb").mkdir()
    table = pl.DataFrame({"id": ["a"], "vector": [[1.0, 2.0]]}).to_arrow()
    lance.write_dataset(table, str(tmp_path / "lancedb" / "default-entity-description.lance"))
    found = read_vectors(tmp_path / "output", Counter())
    assert found.rows() == [("entity", "a", [1.0, 2.0])]


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    (tmp_path / "vectors.text_unit_text.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"vectors.text_unit_text.parquet cannot be read: "):
        read_vectors(tmp_path, Counter())


def test_files_without_ids_or_vectors_are_counted(tmp_path):
    pl.DataFrame({"vector": [[1.0], [2.0]]}).write_parquet(tmp_path / "vectors.text_unit_text.parquet")
    pl.DataFrame({"id": ["a"], "text": ["x"]}).write_parquet(tmp_path / "vectors.entity_description.parquet")
    texts = pl.DataFrame({"id": ["e"], "vector": ["[1, 2]"]})
    texts.write_parquet(tmp_path / "vectors.community_full_content.parquet")
    left_out = Counter()
    assert read_vectors(tmp_path, left_out).is_empty()
    assert left_out == {("embeddings", "in files without a column of ids and one of vectors, left out"): 4}


def test_vectors_of_another_length_are_separated():
    rows = [[1.0, 0.0], [0.0, 1.0], [1.0], [float("nan"), 1.0], [None, 1.0], []]
    vectors = pl.DataFrame({"id": list("abcdef"), "vector": rows}, {"id": pl.String, "vector": pl.List(pl.Float32)})
    assert of_one_length(vectors, None)["id"].to_list() == ["a", "b"]
    assert of_one_length(vectors, 1)["id"].to_list() == ["c"]
    assert of_one_length(vectors, 3).is_empty()
    assert of_one_length(vectors.clear(), None).is_empty()
