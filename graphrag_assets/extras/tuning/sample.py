"""A varied sample of text units for prompt tuning, and text units held out from it."""

import math
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_assets.ids import stable_id

HELD_OUT = 10
MIN_SHARE_OF_SAMPLE = 3
"""At least so many times as many text units are sampled as are held out."""


class Sample(NamedTuple):
    """Ids of text units: those to tune on, in the order of their selection, and those to try the prompts on."""

    ids: list[str]
    held_out: list[str]


def varied_sample(units: pl.DataFrame, n: int, seed: int) -> Sample:
    """At most `n` text units that differ as much as possible, and ten others at random; all at random without vectors.

    Farthest-point traversal (Gonzalez 1985, "Clustering to minimize the maximum intercluster distance"): each next one
    is as far as possible from those selected. Batches have shares by their size, and one each where `n` suffices.

    Args:
        units: id, batch, vector (unit vectors of equal length; null without an embedding model).
    """
    if units["vector"].null_count() < units.height:
        units = units.drop_nulls("vector")
    order = [stable_id("sample", seed, unit) for unit in units["id"]]
    units = units.with_columns(order=pl.Series(order, dtype=pl.String)).sort("order")
    held_out = min(HELD_OUT, units.height // (1 + MIN_SHARE_OF_SAMPLE))
    n = min(n, units.height - held_out)
    chosen = _farthest(_vectors(units["vector"]), *_quotas(units["batch"], n))
    ids = units["id"].gather(chosen)
    return Sample(ids.to_list(), units.filter(~pl.col("id").is_in(ids.implode()))["id"].head(held_out).to_list())


def _vectors(lists: pl.Series) -> np.ndarray:
    """The vectors as rows; without vectors, rows that are equally far from each other: the first in order is next."""
    if lists.null_count():
        return np.zeros((len(lists), 1))
    return np.asarray(lists.list.to_array(len(lists[0])).to_numpy() if len(lists) else np.zeros((0, 1)))


def _quotas(batches: pl.Series, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The batch of each text unit as a number, and how many of each batch are selected: by largest remainders."""
    names, batch, sizes = np.unique(batches.to_numpy(), return_inverse=True, return_counts=True)
    least = np.ones(len(names), int) if n >= len(names) else np.zeros(len(names), int)
    shares = least + (n - least.sum()) * (sizes - least) / max((sizes - least).sum(), 1)
    quotas = np.floor(shares).astype(int)
    largest = np.argsort(quotas - shares, kind="stable")
    quotas[largest[: n - quotas.sum()]] += 1
    return batch, quotas


def _farthest(vectors: np.ndarray, batch: np.ndarray, quotas: np.ndarray) -> list[int]:
    """Places of the selected rows, in order; the first is the first that a batch has a share for."""
    nearest, left, chosen = np.full(len(vectors), math.inf), quotas.copy(), list[int]()
    while left.any():
        place = int(np.argmax(np.where(left[batch] > 0, nearest, -1.0)))
        chosen.append(place)
        left[batch[place]] -= 1
        # Not BLAS, whose sums depend on the number of threads.
        nearest = np.minimum(nearest, np.maximum(1.0 - np.einsum("ij,j->i", vectors, vectors[place]), 0.0))
        nearest[place] = -1.0
    return chosen
