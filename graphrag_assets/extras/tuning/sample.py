"""A varied sample of text units for prompt tuning."""

import math

import numpy as np
import polars as pl


def varied_sample(units: pl.DataFrame, n: int) -> list[str]:
    """At most `n` text units that differ as much as possible, as selected; without vectors the first.

    Farthest-point traversal (Gonzalez 1985, "Clustering to minimize the maximum intercluster distance"): each next one
    is as far as possible from those selected.

    Args:
        units: id, vector (unit vectors of equal length; null without an embedding model).
    """
    with_vectors = units.drop_nulls("vector")
    if with_vectors.is_empty():
        return units["id"].head(n).to_list()
    vectors = np.array(with_vectors["vector"].to_list())
    nearest, chosen = np.full(len(vectors), math.inf), list[int]()
    while len(chosen) < min(n, len(vectors)):
        chosen.append(int(np.argmax(nearest)))
        # Not BLAS, whose sums depend on the number of threads.
        nearest = np.minimum(nearest, np.maximum(1.0 - np.einsum("ij,j->i", vectors, vectors[chosen[-1]]), 0.0))
        nearest[chosen[-1]] = -1.0
    return with_vectors["id"].gather(chosen).to_list()
