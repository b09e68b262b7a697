"""Binary quantization: nearly the same neighbors as exact comparison, from a 32nd of the data."""

import duckdb
import numpy as np
import polars as pl
import pytest

from graphrag_assets.store import binary_quantization as module
from graphrag_assets.store.binary_quantization import binary_codes, write_binary_codes
from tests.word_vectors import embed

COMPARED = 200  # of 5,000: as many in a hundred as 2,000 are of 50,000


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def clusters(n: int, dimensions: int) -> np.ndarray:
    """Gaussian clusters around centers with a strong common mean."""
    random = np.random.default_rng(7)
    centers = random.normal(size=(50, dimensions)) + 2 * random.normal(size=dimensions)
    return unit(centers[random.integers(50, size=n)] + 0.7 * random.normal(size=(n, dimensions)))


def texts(n: int) -> list[str]:
    """Texts put together from parts of sentences, with words as frequent as in a language."""
    random = np.random.default_rng(8)
    syllables = ["ba", "ko", "ri", "ten", "mu", "sal", "fe", "dor", "lin", "qua"]
    words = ["".join(random.choice(syllables, random.integers(2, 5))) for _ in range(5000)]
    chances = 1 / np.arange(1, len(words) + 1)
    sentences = [random.choice(words, 20, p=chances / chances.sum()).tolist() for _ in range(1000)]
    pieces = [sentences[i][: random.integers(5, 20)] for i in random.integers(len(sentences), size=3 * n)]
    return [" ".join([*pieces[i], *pieces[i + 1], *pieces[i + 2]]) for i in range(0, 3 * n, 3)]


def recall_at_10(vectors: np.ndarray, queries: np.ndarray) -> float:
    mean = vectors.mean(axis=0)
    differing = np.bitwise_count(binary_codes(queries, mean)[:, None, :] ^ binary_codes(vectors, mean)[None, :, :])
    found = 0
    for similarity, distance in zip(queries @ vectors.T, differing.astype(int).sum(axis=2), strict=True):
        near = np.argsort(distance, kind="stable")[:COMPARED]
        best = near[np.argsort(-similarity[near], kind="stable")[:10]]
        found += len(set(np.argsort(-similarity, kind="stable")[:10].tolist()) & set(best.tolist()))
    return found / (10 * len(queries))


@pytest.mark.parametrize("dimensions", [384, 512, 1536])
def test_ten_nearest_of_clustered_vectors_are_found(dimensions: int) -> None:
    vectors = clusters(5_000, dimensions)
    assert recall_at_10(vectors, vectors[::100]) >= 0.99


@pytest.mark.extended
def test_ten_nearest_of_embedded_texts_are_found() -> None:
    vectors = embed(texts(5_000))
    assert recall_at_10(vectors, vectors[::100]) >= 0.99


def test_signs_do_not_change_with_the_machine_or_the_version() -> None:
    vector = np.arange(1, 101, dtype=np.float32)[None, :] % 7 - 3
    assert binary_codes(vector, np.zeros(100, np.float32)).tolist() == [SIGNS]


SIGNS = [7390699571830525438, 7355995740240310366]


def test_bits_are_written_only_above_the_threshold_and_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clusters(300, 64)
    monkeypatch.setattr(module, "EXACT_UP_TO", 250)
    monkeypatch.setattr(module, "_VECTORS_PER_PART", 70)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE embeddings (kind VARCHAR, number INTEGER, vector FLOAT[64])")
        rows = pl.DataFrame({"kind": ["entity"] * 300 + ["text_unit"] * 250, "number": [*range(300), *range(250)]})
        rows = rows.with_columns(
            vector=pl.Series([*vectors.tolist(), *vectors[:250].tolist()], dtype=pl.Array(pl.Float32, 64))
        )
        connection.execute("INSERT INTO embeddings FROM rows")
        write_binary_codes(connection)
        tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
        assert tables == [("embedding_means",), ("embeddings",), ("entity_binary_codes",)]
        mean = np.array(
            connection.execute("SELECT mean::FLOAT[] FROM search.embedding_means").fetchall()[0][0], np.float32
        )
        assert np.allclose(mean, vectors.mean(axis=0), atol=1e-6)
        written = connection.execute("SELECT number, bits_0 FROM search.entity_binary_codes ORDER BY number").fetchall()
        assert written == [(n, int(bits)) for n, bits in enumerate(binary_codes(vectors, mean)[:, 0])]
