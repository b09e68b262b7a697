"""Embeddings without a model: hashed words, word pairs and character n-grams, 512 numbers per text.

Feature hashing with signs (Weinberger et al. 2009, https://arxiv.org/abs/0902.2206) keeps inner products in
expectation, needs no vocabulary, and does not depend on the order of texts: a text has the same vector in any batch.
All sums are of integers, which makes that exact to the last bit.
"""

import functools
import math
from collections.abc import Iterator, Sequence

import mmh3
import numpy as np
import polars as pl

from graphrag_assets.languages import STOP_WORDS
from graphrag_assets.text import terms

EMBEDDING_MODEL = "embedded/hashed-ngrams-512-v2"
DIMENSIONS = 512
_SCALE = 256  # weights are rounded to 1/256
_STOP_WEIGHT = 0.05
_NAME_WEIGHT = 1.5
_PAIR_WEIGHT = 0.2
_CHARACTERS_WEIGHT = 0.5
_BEGINNING = 7
_NGRAMS = (3, 5)
_CAPITALIZED = r"\b[\p{Lu}\p{N}][\p{L}\p{M}\p{N}]+"
_STOP_WORDS = pl.Series(sorted(STOP_WORDS))
_TEXTS_AT_ONCE = 256  # bounds the memory of their features


def embed(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors of the texts: float32, shape (len(texts), 512). A text without a single term gives zeros.

    Words count by their first seven letters, a stemmer for any language (McNamee and Mayfield 2004,
    https://doi.org/10.1023/B:INRT.0000009441.78971.be). They weigh (1 + ln occurrences) · √(letters / 7), because
    frequent words are short (Zipf 1935) and no other text may be asked for real frequencies; names and numbers half as
    much again; stop words next to nothing. Pairs of neighboring words weigh a fifth. A word's character n-grams
    (3 to 5, inside word boundaries) together weigh half as much as the word.
    """
    blocks = [_embed_block(texts[i : i + _TEXTS_AT_ONCE]) for i in range(0, len(texts), _TEXTS_AT_ONCE)]
    return np.vstack([np.zeros((0, DIMENSIONS), np.float32), *blocks])


def _embed_block(texts: Sequence[str]) -> np.ndarray:
    weighted = _weighted_features(texts)
    hashed = [_hashed(feature) for feature in weighted["feature"]]
    sizes = [len(columns) for columns, _ in hashed]
    columns = np.concatenate([np.zeros(0, np.int64), *(columns for columns, _ in hashed)])
    values = np.concatenate([np.zeros(0), *(values for _, values in hashed)])
    rows, weights = (np.repeat(weighted[name].to_numpy(), sizes) for name in ("row", "weight"))
    places = rows.astype(np.int64) * DIMENSIONS + columns
    sums = np.bincount(places, weights * values, len(texts) * DIMENSIONS).reshape(-1, DIMENSIONS)
    lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
    return (sums / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def _weighted_features(texts: Sequence[str]) -> pl.DataFrame:
    """Frame (row, feature, weight Int64): the words of each text, and its pairs of neighboring words."""
    series = pl.Series("feature", list(texts), dtype=pl.String)
    words = _one_per_row(terms(series)).with_columns(stop=pl.col("feature").is_in(_STOP_WORDS.implode()))
    words = words.with_columns(pl.col("feature").str.head(_BEGINNING))
    following = pl.all().shift(-1).name.suffix("_next")
    pairs = words.with_columns(following).filter(
        pl.col("row") == pl.col("row_next"), ~pl.col("stop"), ~pl.col("stop_next")
    )
    pairs = pairs.with_columns(pl.concat_str("feature", "feature_next", separator=" "))
    capitalized = series.str.normalize("NFKC").str.extract_all(_CAPITALIZED)
    names = _one_per_row(capitalized.list.eval(pl.element().str.to_lowercase().str.head(_BEGINNING).unique()))
    words = words.join(names.with_columns(name=True), on=["row", "feature"], how="left")
    length = (pl.col("feature").str.len_chars() / _BEGINNING).sqrt()
    of_word = length * pl.when("name").then(_NAME_WEIGHT).otherwise(1.0)
    factor = pl.when("stop").then(_STOP_WEIGHT).otherwise(of_word)
    features = pl.concat(
        [words.select("row", "feature", factor=factor), pairs.select("row", "feature", factor=pl.lit(_PAIR_WEIGHT))]
    )
    weight = (1 + pl.len().log()) * pl.col("factor").max() * _SCALE
    return features.group_by("row", "feature").agg(weight=weight.round().cast(pl.Int64))


def _one_per_row(lists: pl.Series) -> pl.DataFrame:
    """Frame (row, feature): the elements of each list, in order."""
    frame = lists.alias("feature").to_frame().with_row_index("row")
    return frame.explode("feature", empty_as_null=False).drop_nulls()


@functools.lru_cache(maxsize=1 << 16)
def _hashed(feature: str) -> tuple[np.ndarray, np.ndarray]:
    """The feature's own cell, and for a word those of its character n-grams; their values in units of 1/256."""
    cells: dict[int, float] = {}
    if " " not in feature:
        for cell, sign in map(_cell, _ngrams(feature)):
            cells[cell] = cells.get(cell, 0) + sign
        length = math.sqrt(sum(n * n for n in cells.values())) or 1
        cells = {cell: _CHARACTERS_WEIGHT * n / length for cell, n in cells.items()}
    cell, sign = _cell(feature)
    cells[cell] = cells.get(cell, 0) + sign
    return np.array(list(cells)), np.array([round(value * _SCALE) for value in cells.values()], float)


def _ngrams(word: str) -> Iterator[str]:
    """The word's n-grams with a space at either end; a word shorter than n once, as a whole."""
    padded = f" {word} "
    for n in range(_NGRAMS[0], _NGRAMS[1] + 1):
        for start in range(max(len(padded) - n, 0) + 1):
            yield padded[start : start + n]
        if len(padded) <= n:
            break


def _cell(feature: str) -> tuple[int, int]:
    """Where a feature is counted, and with which sign."""
    number = mmh3.hash(feature)
    return abs(number) % DIMENSIONS, 1 if number >= 0 else -1
