"""Embeddings without a model: hashed words, word pairs and character n-grams, 512 numbers per text.

Feature hashing with signs (Weinberger et al. 2009, https://arxiv.org/abs/0902.2206) keeps inner products in
expectation, needs no vocabulary, and so knows no order of texts: a text has the same vector in any batch.
All sums are of integers, which makes that exact to the last bit.
"""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from graphrag_assets.embedded.hashed_embedding import (
    BEGINNING,
    CAPITALIZED,
    DIMENSIONS,
    NAME_WEIGHT,
    PAIR_WEIGHT,
    SCALE,
    STOP_WEIGHT,
    embed_one,
    hashed,
)
from graphrag_assets.embedded.stop_words import STOP_WORDS
from graphrag_assets.text import terms

if TYPE_CHECKING:
    import scipy.sparse as sp

MODEL = "embedded/hashed-ngrams-512-v2"
_TEXTS_AT_ONCE = 4096  # bounds the memory of the sparse matrices
_STOP_WORDS = pl.Series(sorted(STOP_WORDS))
_FEW_TEXTS = 8  # are embedded one by one: frames and sparse matrices cost a text five times as much


def embed(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors of the texts: float32, shape (len(texts), 512). A text without a single term gives zeros.

    Words count by their first seven letters, a stemmer for any language (McNamee and Mayfield 2004,
    https://doi.org/10.1023/B:INRT.0000009441.78971.be). They weigh (1 + ln occurrences) · √(letters / 7), because
    frequent words are short (Zipf 1935) and no other text may be asked for real frequencies; names and numbers half as
    much again; stop words next to nothing. Pairs of neighboring words weigh a fifth. A word's character n-grams
    (3 to 5, inside word boundaries) together weigh half as much as the word.
    """
    if len(texts) <= _FEW_TEXTS:
        return np.array([embed_one(text) for text in texts], np.float32).reshape(len(texts), DIMENSIONS)
    blocks = [texts[i : i + _TEXTS_AT_ONCE] for i in range(0, len(texts), _TEXTS_AT_ONCE)]
    return np.vstack([np.zeros((0, DIMENSIONS), np.float32), *map(_embed_block, blocks)])


def _embed_block(texts: Sequence[str]) -> np.ndarray:
    import scipy.sparse as sp

    counts = _weighted_features(texts)
    features = counts["feature"].unique().sort()
    columns = features.search_sorted(counts["feature"]).to_numpy()
    weights = sp.csr_matrix(
        (counts["weight"].to_numpy(), (counts["row"].to_numpy(), columns)), shape=(len(texts), len(features))
    )
    sums = (weights @ _hashed(features)).toarray().astype(np.float64)
    lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
    return (sums / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def _weighted_features(texts: Sequence[str]) -> pl.DataFrame:
    """Frame (row, feature, weight Int64): the words of each text, and its pairs of neighbouring words."""
    series = pl.Series("feature", list(texts), dtype=pl.String)
    words = _one_per_row(terms(series)).with_columns(stop=pl.col("feature").is_in(_STOP_WORDS.implode()))
    words = words.with_columns(pl.col("feature").str.head(BEGINNING))
    following = pl.all().shift(-1).name.suffix("_next")
    pairs = words.with_columns(following).filter(
        pl.col("row") == pl.col("row_next"), ~pl.col("stop"), ~pl.col("stop_next")
    )
    pairs = pairs.with_columns(pl.concat_str("feature", "feature_next", separator=" "))
    capitalized = series.str.normalize("NFKC").str.extract_all(CAPITALIZED)
    names = _one_per_row(capitalized.list.eval(pl.element().str.to_lowercase().str.head(BEGINNING).unique()))
    length = pl.col("feature").str.len_chars()
    factor = (
        pl.when("stop")
        .then(STOP_WEIGHT)
        .otherwise((length / BEGINNING).sqrt() * pl.when("name").then(NAME_WEIGHT).otherwise(1.0))
    )
    words = words.join(names.with_columns(name=True), on=["row", "feature"], how="left")
    features = pl.concat(
        [
            words.select("row", "feature", factor=factor),
            pairs.select("row", "feature", factor=pl.lit(PAIR_WEIGHT)),
        ]
    )
    weight = (1 + pl.len().log()) * pl.col("factor").max() * SCALE
    return features.group_by("row", "feature").agg(weight=weight.round().cast(pl.Int64))


def _one_per_row(lists: pl.Series) -> pl.DataFrame:
    """Frame (row, feature): the elements of each list, in order."""
    frame = lists.alias("feature").to_frame().with_row_index("row")
    return frame.explode("feature", empty_as_null=False).drop_nulls()


def _hashed(features: pl.Series) -> "sp.csr_matrix":
    """Integer matrix (features, 512): each feature's own cell, and for words their character n-grams."""
    import scipy.sparse as sp

    cells = [hashed(feature) for feature in features]
    ends = np.cumsum([0, *map(len, cells)])
    columns = np.fromiter(itertools.chain.from_iterable(cells), np.int32, ends[-1])
    values = np.fromiter(itertools.chain.from_iterable(c.values() for c in cells), np.int64, ends[-1])
    return sp.csr_matrix((values, columns, ends), shape=(len(features), DIMENSIONS))
