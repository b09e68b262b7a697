"""The map after a change: existing entities keep their positions, new ones are placed near their neighbors.

A map laid out again moves every point a little, so that it looks different, and each row of `entity_positions` is
rewritten. Here the work and the rows follow the change; when many have come, the map is laid
out from scratch.
"""

import hashlib
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_assets.pipeline.clustering import Floats, Ints, edge_arrays
from graphrag_assets.pipeline.layout import DISC_FILL, GOLDEN_ANGLE, community_labels, layout, spiral

PLACED_SHARE = 0.1
"""Of all entities: when more were placed since the last layout from scratch, there is a new one."""
_MAX_PLACED = 2_000  # in one run; beyond, a layout from scratch is cheaper
_WINDOWS = (0.05, 0.2, 1.0)  # how far from where it belongs a gap for a community is looked for
_CANDIDATES = 400


class Positions(NamedTuple):
    """`frame`: id, x, y, sorted by id. `n_placed`: entities placed since the last layout from scratch."""

    frame: pl.DataFrame
    n_placed: int


def update_layout(
    entities: pl.DataFrame,
    members: pl.DataFrame,
    relationships: pl.DataFrame,
    seed: int,
    previous: pl.DataFrame,
    n_placed_before: int,
) -> Positions:
    """`previous` without deleted entities, and with positions of new ones and of those whose community has changed.

    A layout from scratch when more than a tenth of the entities would have been placed so, or the map has no gap left.

    Args:
        entities, members, relationships: as for `layout.layout`.
        seed: of a layout from scratch.
        previous: id, x, y.
        n_placed_before: `n_placed` of the previous map.
    """
    placed = _place_new(entities, members, relationships, previous, n_placed_before)
    return placed or Positions(layout(entities, members, relationships, seed), 0)


def _place_new(
    entities: pl.DataFrame,
    members: pl.DataFrame,
    relationships: pl.DataFrame,
    previous: pl.DataFrame,
    n_placed_before: int,
) -> Positions | None:
    """As `update_layout`; None if a layout from scratch is due."""
    nodes = entities.select("id", "degree").unique("id").sort("id")
    points = nodes.join(previous, on="id", how="left", maintain_order="left").select("x", "y").to_numpy().copy()
    if not np.isfinite(points[:, 0]).any():
        return None
    labels, keys = community_labels(nodes, members)
    centers, sizes = _centers(points, labels)
    distance = np.nan_to_num(np.hypot(*(points - centers[labels]).T))
    scale = _scale(distance, labels, sizes)
    # What is further from its community's center than the community's disc is wide belongs elsewhere.
    points[distance > 2 * scale * np.sqrt(sizes[labels])] = np.nan
    missing = np.flatnonzero(np.isnan(points[:, 0]))
    n_placed = n_placed_before + len(missing)
    if len(missing) > _MAX_PLACED or n_placed > PLACED_SHARE * nodes.height:
        return None
    edges, weights = edge_arrays(nodes["id"], relationships)
    if not _place(points, missing, labels, keys, edges, weights, scale):
        return None
    frame = nodes.select("id", x=pl.Series(points[:, 0]).round(6), y=pl.Series(points[:, 1]).round(6))
    return Positions(frame, n_placed)


def _centers(points: Floats, labels: Ints) -> tuple[Floats, Ints]:
    """Median place (k, 2) of each community's placed members, nan where there is none; and its members' number (k)."""
    sizes = np.bincount(labels)
    frame = pl.DataFrame({"label": labels, "x": points[:, 0], "y": points[:, 1]}).filter(pl.col("x").is_not_nan())
    medians = frame.group_by("label").agg(pl.col("x", "y").median())
    centers = np.full((len(sizes), 2), np.nan)
    centers[medians["label"].to_numpy()] = medians.select("x", "y").to_numpy()
    return centers, sizes


def _scale(distance: Floats, labels: Ints, sizes: Ints) -> float:
    """The radius of the disc of a single entity, by the distances from the centers of the communities on the map."""
    reach = np.zeros(len(sizes))
    np.maximum.at(reach, labels, distance)
    several = reach > 0
    if not several.any():
        return float(1 / np.sqrt(len(labels) + 1))
    return float(np.median(reach[several] / (DISC_FILL * np.sqrt(sizes[several]))))


def _place(
    points: Floats, missing: Ints, labels: Ints, keys: list[str], edges: Ints, weights: Floats, scale: float
) -> bool:
    """Fill in the `missing` rows of `points`; false if the map has no gap for a new community."""
    centers, sizes = _centers(points, labels)
    radii = scale * np.sqrt(sizes)
    for label in dict.fromkeys(labels[missing].tolist()):
        new = missing[labels[missing] == label]
        if np.isnan(centers[label, 0]):
            wanted = _mean_of_neighbors(points, new, edges, weights)
            found = _gap(_at_the_edge(keys[label]) if wanted is None else wanted, radii[label], centers, radii)
            if found is None:
                return False
            centers[label] = found
            points[new] = found + spiral(np.arange(len(new))) * radii[label] * DISC_FILL / np.sqrt(len(new))
            continue
        for rank, node in enumerate(new.tolist(), 1):
            near = _mean_of_neighbors(points, np.array([node]), edges, weights, labels)
            beside = spiral(np.array([rank]))[0] * scale * DISC_FILL / np.sqrt(2 * len(new))
            points[node] = (centers[label] if near is None else near) + beside
    np.clip(points, -1, 1, out=points)
    return True


def _mean_of_neighbors(
    points: Floats, nodes: Ints, edges: Ints, weights: Floats, labels: Ints | None = None
) -> Floats | None:
    """Weighted mean place of the placed neighbors of `nodes`, with `labels` of those in the same community."""
    from_low, from_high = np.isin(edges[:, 0], nodes), np.isin(edges[:, 1], nodes)
    ends = np.concatenate([edges[from_low], edges[from_high][:, ::-1]])
    pull = np.concatenate([weights[from_low], weights[from_high]])
    usable = ~np.isnan(points[ends[:, 1], 0])
    if labels is not None:
        usable &= labels[ends[:, 0]] == labels[ends[:, 1]]
    if not usable.any():
        return None
    return np.asarray(np.average(points[ends[usable, 1]], axis=0, weights=pull[usable]))


def _at_the_edge(key: str) -> Floats:
    """A point near the edge of the map, in a direction by the name of the community."""
    angle = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest()) * GOLDEN_ANGLE
    return 0.95 * np.array([np.cos(angle), np.sin(angle)])


def _gap(wanted: Floats, radius: float, centers: Floats, radii: Floats) -> Floats | None:
    """The place nearest to `wanted`, of those tried, where a disc overlaps no other and lies on the map."""
    placed = ~np.isnan(centers[:, 0])
    for window in _WINDOWS:
        tried = wanted + spiral(np.arange(_CANDIDATES)) * window / np.sqrt(_CANDIDATES)
        tried = tried[(np.abs(tried) <= 1 - radius).all(axis=1)]
        near = placed & (np.abs(centers - wanted) <= window + radius + radii[:, None]).all(axis=1)
        away = np.hypot(*np.moveaxis(tried[:, None] - centers[near], -1, 0)) - radii[near]
        free = np.flatnonzero((away >= radius).all(axis=1))
        if len(free):
            return np.asarray(tried[free[0]])
    return None
