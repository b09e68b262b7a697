"""The map: every entity has a position; communities stay together and apart from each other."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.pipeline.layout import layout
from tests.pipeline.test_clustering import cluster, nested_planted_graph, node

Edges = list[tuple[str, str, float]]
EDGES = {"source_id": pl.String, "target_id": pl.String, "weight": pl.Float64}


def graph(size: int, edges: Edges) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Entities, members, relationships."""
    relationships = pl.DataFrame(edges, schema=EDGES, orient="row")
    entities = pl.DataFrame({"id": [f"e{i:04d}" for i in range(size)]})
    members = cluster(entities["id"], relationships).rename({"cluster": "community"})
    return entities, members, relationships


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    size = draw(st.integers(1, 30))
    ends = st.integers(0, size - 1).map(lambda i: f"e{i:04d}")
    return size, draw(st.lists(st.tuples(ends, ends, st.floats(0.01, 100)), max_size=60))


@given(graphs())
def test_every_entity_has_one_place_between_minus_one_and_one(drawn: tuple[int, Edges]) -> None:
    entities, members, relationships = graph(*drawn)
    places = layout(entities, members, relationships)
    assert places.columns == ["id", "x", "y"]
    assert places["id"].to_list() == entities["id"].to_list()
    points = places.select("x", "y").to_numpy()
    assert np.isfinite(points).all()
    assert np.abs(points).max() <= 1
    assert len(np.unique(points, axis=0)) == len(points)
    if len(points) > 1:
        assert np.abs(points).max() == pytest.approx(1)


def test_the_members_of_a_community_lie_together() -> None:
    size, edges = nested_planted_graph(seed=1)
    entities, members, relationships = graph(size, [(node(a), node(b), weight) for a, b, weight in edges])
    places = layout(entities, members, relationships).join(
        members.filter(pl.col("level") == 0), left_on="id", right_on="entity_id"
    )
    points, community = places.select("x", "y").to_numpy(), places["community"].to_numpy()
    distance = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    np.fill_diagonal(distance, np.inf)
    nearest = community[distance.argmin(axis=1)]
    assert len(np.unique(community)) > 5
    assert (nearest == community).mean() > 0.8
