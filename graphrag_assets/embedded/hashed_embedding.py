"""The hashed embedding of one text, as `embeddings.embed` makes it of many, without frames and sparse matrices.

A question is embedded on the way to its answer: what pays for thousands of texts costs it more than its search.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator

import mmh3
import numpy as np
import polars as pl

from graphrag_assets.embedded.stop_words import STOP_WORDS
from graphrag_assets.text import terms_of

DIMENSIONS = 512
SCALE = 256  # weights are rounded to 1/256
STOP_WEIGHT = 0.05
NAME_WEIGHT = 1.5
PAIR_WEIGHT = 0.2
BEGINNING = 7
CAPITALIZED = r"\b[\p{Lu}\p{N}][\p{L}\p{M}\p{N}]+"
CHARACTERS_WEIGHT = 0.5
NGRAMS = (3, 5)

_STOP = frozenset(STOP_WORDS)


def embed_one(text: str) -> np.ndarray:
    """The unit vector of a text: float32, shape (512,). A text without a single term gives zeros."""
    sums = np.zeros(DIMENSIONS)
    for feature, weight in _weights(text):
        for cell, value in hashed(feature).items():
            sums[cell] += weight * value
    length = np.sqrt((sums * sums).sum())
    return (sums / (length or 1)).astype(np.float32)


def hashed(feature: str) -> dict[int, int]:
    """The feature's own cell, and for a word those of its character n-grams, with their values in units of 1/256."""
    cells: dict[int, float] = {}
    if " " not in feature:
        for cell, sign in map(_cell, _ngrams(feature)):
            cells[cell] = cells.get(cell, 0) + sign
        length = math.sqrt(sum(n * n for n in cells.values())) or 1
        cells = {cell: CHARACTERS_WEIGHT * n / length for cell, n in cells.items()}
    cell, sign = _cell(feature)
    cells[cell] = cells.get(cell, 0) + sign
    return {cell: round(value * SCALE) for cell, value in cells.items()}


def _weights(text: str) -> Iterator[tuple[str, int]]:
    """The words of the text and its pairs of neighbouring words, each with its weight."""
    words = terms_of(text)
    capitalized = pl.col("text").str.normalize("NFKC").str.extract_all(CAPITALIZED).explode().str.to_lowercase()
    names = set(pl.DataFrame({"text": [text]}).select(capitalized.str.head(BEGINNING))["text"])
    factors: dict[str, float] = {}
    for word in set(words):
        start = word[:BEGINNING]
        factor = math.sqrt(len(start) / BEGINNING) * (NAME_WEIGHT if start in names else 1.0)
        factors[start] = max(factors.get(start, 0.0), STOP_WEIGHT if word in _STOP else factor)
    for start, count in Counter(word[:BEGINNING] for word in words).items():
        yield start, round((1 + math.log(count)) * factors[start] * SCALE)
    content = ((a, b) for a, b in itertools.pairwise(words) if a not in _STOP and b not in _STOP)
    for pair, count in Counter(f"{a[:BEGINNING]} {b[:BEGINNING]}" for a, b in content).items():
        yield pair, round((1 + math.log(count)) * PAIR_WEIGHT * SCALE)


def _ngrams(word: str) -> Iterator[str]:
    """The word's n-grams with a space at either end; a word shorter than n once, as a whole."""
    padded = f" {word} "
    for n in range(NGRAMS[0], NGRAMS[1] + 1):
        for start in range(max(len(padded) - n, 0) + 1):
            yield padded[start : start + n]
        if len(padded) <= n:
            break


def _cell(feature: str) -> tuple[int, int]:
    """Where a feature is counted, and with which sign."""
    number = mmh3.hash(feature)
    return abs(number) % DIMENSIONS, 1 if number >= 0 else -1
