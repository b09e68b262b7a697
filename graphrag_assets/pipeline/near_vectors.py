"""Pairs of similar vectors among many: random hyperplanes (Charikar, 2002, "Similarity Estimation Techniques").

Of each vector only the side of each plane on which it lies is kept, 64 bytes. Vectors are compared where all signs of
one of several bands are the same, by the share of signs in which they differ.
"""

import numpy as np
import polars as pl

MIN_COSINE = 0.85
_PLANES = 512
_SEED = 20
_MOST = 50
"""A band that more vectors share says nothing about two of them."""
_BANDS = ((20_000, 12), (300_000, 16), (1 << 62, 20))
"""Signs per band, up to a number of vectors: a band that has more signs is shared by fewer."""
PAIRS = {"a": pl.Int32, "b": pl.Int32, "cosine": pl.Float64}


class NearVectors:
    """Collects the signs of vectors, in parts, and compares them."""

    def __init__(self, count: int) -> None:
        """`count`: of all vectors."""
        self._band = next(signs for most, signs in _BANDS if count <= most)
        self._planes = np.zeros((0, 0), np.float32)
        self._numbers, self._signs, self._codes = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()

    def add(self, numbers: np.ndarray, vectors: np.ndarray) -> None:
        """Add vectors (n, dimensions) with their numbers."""
        if len(self._planes) != vectors.shape[1]:
            random = np.random.default_rng(_SEED)
            self._planes = random.standard_normal((vectors.shape[1], _PLANES), dtype=np.float32)
        signs = vectors @ self._planes > 0
        bands = signs[:, : _PLANES // self._band * self._band].reshape(len(signs), -1, self._band)
        self._numbers.append(numbers)
        self._signs.append(np.packbits(signs, axis=1).view(np.uint64))
        self._codes.append((bands @ (1 << np.arange(self._band, dtype=np.uint32))).astype(np.uint32))

    def pairs(self) -> pl.DataFrame:
        """a, b, cosine: numbers a < b of the pairs whose estimated cosine is at least `MIN_COSINE`."""
        if not self._signs:
            return pl.DataFrame(schema=PAIRS)
        numbers, signs, codes = (np.concatenate(parts) for parts in (self._numbers, self._signs, self._codes))
        frames = [_compared(signs, codes[:, band]) for band in range(codes.shape[1])]
        found = pl.concat(frames).unique().sort("a", "b")
        ends = np.sort(numbers[found.select("a", "b").to_numpy()], axis=1)
        return pl.DataFrame({"a": ends[:, 0], "b": ends[:, 1], "cosine": found["cosine"]}, PAIRS)


def _compared(signs: np.ndarray, codes: np.ndarray) -> pl.DataFrame:
    """a, b, cosine: places of the similar vectors with the same code."""
    order = np.argsort(codes, kind="stable")
    _, counts = np.unique(codes, return_counts=True)
    few = (counts > 1) & (counts <= _MOST)
    order = order[np.repeat(few, counts)]
    sizes = np.repeat(counts[few], counts[few])
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts[few]) - counts[few], counts[few])
    frames = [pl.DataFrame(schema=PAIRS)]
    for step in range(1, _MOST):
        first = np.flatnonzero(place + step < sizes)
        if not len(first):
            break
        one, other = order[first], order[first + step]
        differing = np.bitwise_count(signs[one] ^ signs[other]).sum(axis=1)
        cosine = np.cos(np.pi * differing / _PLANES)
        near = cosine >= MIN_COSINE
        ends = np.sort(np.stack([one[near], other[near]], axis=1), axis=1)
        frames.append(pl.DataFrame({"a": ends[:, 0], "b": ends[:, 1], "cosine": cosine[near]}, PAIRS))
    return pl.concat(frames)
