"""A map of the entity graph: one point per entity, communities together.

One force-directed layout (Fruchterman and Reingold 1991, igraph's implementation). Each community of level 0 has an
invisible hub that holds its entities together, and all hubs hang on one center, so that nothing drifts away.
"""

import igraph
import numpy as np
import polars as pl

from graphrag_assets.pipeline.clustering import Floats, Ints, edge_arrays, is_inside, seeded

SEED = 0xDEADBEEF
_GRID_FROM = 300  # nodes; above this igraph's grid: all pairs look better but take quadratic time
_ROUNDS = 500
_TO_HUB, _TO_CENTER, _BETWEEN_COMMUNITIES = 10.0, 0.1, 0.2  # pulls; that of a mean relationship inside one is 1


def layout(entities: pl.DataFrame, members: pl.DataFrame, relationships: pl.DataFrame) -> pl.DataFrame:
    """Place the entities.

    Args:
        entities: id.
        members: level, community, entity_id, of which level 0 is used. An entity in none is a community of its own.
        relationships: source_id, target_id, weight. Those of other entities are ignored.

    Returns:
        `id, x, y` for each entity, sorted by id; coordinates from -1 to 1, one scale for both axes. The same rows in
        any order give the same map.
    """
    nodes = entities.select("id").unique().sort("id")
    if nodes.is_empty():
        return pl.DataFrame(schema={"id": pl.String, "x": pl.Float64, "y": pl.Float64})
    level0 = members.filter(pl.col("level") == 0).select(id="entity_id", community=pl.col("community").cast(pl.String))
    joined = nodes.join(level0, on="id", how="left", maintain_order="left")
    labels = joined.select(pl.coalesce("community", "id").rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    between = relationships.join(nodes, left_on="source_id", right_on="id", how="semi").join(
        nodes, left_on="target_id", right_on="id", how="semi"
    )
    edges, weights = edge_arrays(nodes["id"], between)
    points = _forces(labels, edges, weights)
    points -= (points.max(axis=0) + points.min(axis=0)) / 2
    points /= np.abs(points).max() or 1.0
    return nodes.select("id", x=pl.Series(points[:, 0]).round(6), y=pl.Series(points[:, 1]).round(6))


def _forces(labels: Ints, edges: Ints, weights: Floats) -> Floats:
    size, sizes = len(labels), np.bincount(labels)
    hubs, center = size + np.arange(len(sizes)), size + len(sizes)
    inside = is_inside(labels, edges)
    pull = np.sqrt(weights / (weights.mean() if len(weights) else 1.0)) * np.where(inside, 1.0, _BETWEEN_COMMUNITIES)
    with seeded(SEED):
        graph = igraph.Graph(
            n=center + 1,
            edges=np.concatenate(
                [
                    edges,
                    np.column_stack([np.arange(size), hubs[labels]]),
                    np.column_stack([hubs, np.full_like(hubs, center)]),
                ]
            ),
        )
        placed = graph.layout_fruchterman_reingold(
            weights=np.concatenate([pull, np.full(size, _TO_HUB), _TO_CENTER * np.sqrt(sizes)]),
            niter=_ROUNDS,
            grid="grid" if size > _GRID_FROM else "nogrid",
        )
    return np.asarray(placed.coords[:size], dtype=np.float64)
