import re

import numpy as np
import polars as pl
import pytest

from graphrag_assets.embedded.centrality import centrality, summarize

TEXTS = [
    "The cable parted in deep water.",
    "In deep water the cable parted again.",
    "The Queen sent a message.",
    "A message went to the President.",
    "Potatoes are cheap.",
]


def tf_idf(texts: list[str]) -> np.ndarray:
    """Unit vectors of weights (1 + ln tf) (1 + ln((1 + n) / (1 + df))), as scikit-learn's TfidfVectorizer has them."""
    found = [re.findall(r"\w\w+", text.lower()) for text in texts]
    counts = np.array([[words.count(word) for word in sorted(set().union(*found))] for words in found])
    idf = 1 + np.log((1 + len(texts)) / (1 + (counts > 0).sum(axis=0)))
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    return weights / np.linalg.norm(weights, axis=1, keepdims=True)


def test_centrality_is_the_mean_similarity_within_the_group():
    groups = [0, 0, 0, 1, 1]
    expected = []
    for texts in (TEXTS[:3], TEXTS[3:]):
        vectors = tf_idf(texts)
        expected += np.mean(vectors @ vectors.T, axis=1).tolist()
    assert centrality(TEXTS, groups) == pytest.approx(expected, abs=1e-6)


def described(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        [(*row, 1) for row in rows],
        schema={"key": pl.String, "title": pl.String, "description": pl.String, "n": pl.Int64},
        orient="row",
    )


def test_central_descriptions_are_kept_and_outliers_are_not():
    summary = summarize(described(*(("cable", "xyz", text) for text in TEXTS)), max_sentences=2)["description"].item()
    assert "Potatoes" not in summary
    assert summary.count(".") == 2


def test_what_is_said_more_often_comes_first_and_others_while_there_is_room():
    said = described(("k", "xyz", "A ship."), ("k", "xyz", "B boat.")).with_columns(n=pl.Series([1, 5]))
    assert summarize(said)["description"].item() == "B boat. A ship."
    assert summarize(said, max_characters=10)["description"].item() == "B boat."
