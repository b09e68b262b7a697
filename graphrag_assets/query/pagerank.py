"""Personalized PageRank on a small directed graph."""

import math

import numpy as np

DAMPING = 0.7
"""Share of the rank that follows the edges at each step; the rest returns to where the walk starts."""


def personalized_pagerank(
    sources: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    restart: np.ndarray,
    damping: float = DAMPING,
    tolerance: float = 1e-9,
) -> np.ndarray:
    """The share of time that a random walk spends at each node when it keeps returning to the restart nodes.

    At each step the walk follows an edge of its node with probability `damping` times the edge's weight, and otherwise
    starts over at a node drawn by `restart` (Page et al. 1999; Haveliwala 2002, https://doi.org/10.1145/511446.511513).
    So weights are probabilities: those of a node's edges sum to 1 or less.

    Args:
        sources, targets: integers (edges,): the nodes that each edge leads from and to.
        weights: floats (edges,), not negative.
        restart: floats (nodes,), not negative, not all 0; they need not sum to 1.
        tolerance: an upper bound of the L1 distance from the exact ranks.

    Returns:
        floats (nodes,) that sum to 1.
    """
    start = restart / restart.sum()
    visits = start
    # Every step shrinks the distance from the fixed point by the damping; scaling to 1 at most doubles what is left.
    for _ in range(math.ceil(math.log(tolerance * (1 - damping) / 2) / math.log(damping))):
        arriving = np.bincount(targets, visits[sources] * weights, len(start))
        visits = (1 - damping) * start + damping * arriving
    return visits / visits.sum()
