"""Personalized PageRank against igraph's exact one."""

import igraph
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.query.passages import personalized_pagerank

NODES = 12
EDGES = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.floats(0.01, 1)), min_size=0, max_size=40
)
RESTARTS = st.lists(st.sampled_from([0.0, 0.1, 1.0, 3.0]), min_size=NODES, max_size=NODES).filter(any)


def exact(edges: list[tuple[int, int, float]], restart: np.ndarray, damping: float) -> np.ndarray:
    """igraph solves the linear system. What a node's edges leave of 1 leads back to the restart nodes."""
    start = restart / restart.sum()
    left = np.ones(NODES)
    for source, _, weight in edges:
        left[source] -= weight
    back = [(node, home, left[node] * start[home]) for node in range(NODES) for home in np.flatnonzero(start)]
    every = [edge for edge in (*edges, *back) if edge[2] > 1e-12]
    graph = igraph.Graph(NODES, [(source, target) for source, target, _ in every], directed=True)
    weights = [weight for _, _, weight in every]
    return np.array(graph.personalized_pagerank(damping=damping, reset=start.tolist(), weights=weights))


@given(EDGES, RESTARTS, st.sampled_from([0.3, 0.5, 0.7, 0.85]), st.sampled_from([1e-2, 1e-4, 1e-9]))
def test_ranks_are_within_the_tolerance_of_the_exact_ones(edges, restart, damping, tolerance):
    sums = np.bincount([s for s, _, _ in edges], [w for _, _, w in edges], NODES)
    edges = [(s, t, w / max(sums[s], 1.0)) for s, t, w in edges]  # weights are probabilities
    columns = [np.array(column) for column in zip(*edges, strict=True)] or [np.array([], int)] * 2 + [np.array([])]
    sources, targets, weights = columns
    ranks = personalized_pagerank(sources, targets, weights, np.array(restart), damping, tolerance)
    assert ranks.sum() == pytest.approx(1)
    assert np.abs(ranks - exact(edges, np.array(restart), damping)).sum() <= tolerance
