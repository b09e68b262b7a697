"""A map of the entity graph: one point per entity, cheap enough for every run.

Two steps keep it close to linear. The communities of level 0 become discs, as large as they have entities,
placed by force (Fruchterman and Reingold 1991, igraph's implementation) on the graph of their relationships
and pushed apart until they hardly overlap. Then each community's entities are placed by force inside its
disc.
"""

import igraph
import numpy as np
import polars as pl

from graphrag_assets.pipeline.clustering import Floats, Ints, edge_arrays, seeded, subgraphs

GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
_GRID_FROM = 300  # nodes; above this igraph's grid: all pairs look better but take quadratic time
DISC_FILL = 0.85  # of a disc's radius; the rest is the gap between communities
_MAP_FILL = 0.55  # share of the map's area that the discs cover before they are pushed apart
_PUSH_ROUNDS = 60
_PAIRS_PER_PART = 1_000_000  # of discs that may overlap; limits memory


def layout(entities: pl.DataFrame, members: pl.DataFrame, relationships: pl.DataFrame, seed: int) -> pl.DataFrame:
    """`id, x, y` for each entity, sorted by id; coordinates from -1 to 1, one scale for both axes.

    `entities` has `id, degree`; `members` is `clustering.cluster`'s frame, of which level 0 is used;
    `relationships` has `source_id, target_id, weight`. The same rows in any order give the same map.
    """
    nodes = entities.select("id", "degree").unique("id").sort("id")
    if nodes.is_empty():
        return pl.DataFrame(schema={"id": pl.String, "x": pl.Float64, "y": pl.Float64})
    labels, _ = community_labels(nodes, members)
    degree = nodes["degree"].fill_null(0).to_numpy()
    edges, weights = edge_arrays(nodes["id"], relationships)
    with seeded(seed):
        centers, radii = _place_discs(labels, edges, weights)
        points = centers[labels] + _place_in_discs(labels, edges, weights, degree, radii)
    points -= (points.max(axis=0) + points.min(axis=0)) / 2
    points /= np.abs(points).max() or 1.0
    return nodes.select("id", x=pl.Series(points[:, 0]).round(6), y=pl.Series(points[:, 1]).round(6))


def community_labels(nodes: pl.DataFrame, members: pl.DataFrame) -> tuple[Ints, list[str]]:
    """The number of each node's community of level 0, from 0, and the communities' keys; a node alone is one."""
    level0 = members.filter(pl.col("level") == 0).select(
        pl.col("entity_id").alias("id"), pl.col("cluster").cast(pl.String)
    )
    keys = (
        nodes.join(level0, on="id", how="left", maintain_order="left").select(pl.coalesce("cluster", "id")).to_series()
    )
    return keys.rank("dense").cast(pl.Int64).to_numpy() - 1, keys.unique().sort().to_list()


def _place_discs(labels: Ints, edges: Ints, weights: Floats) -> tuple[Floats, Floats]:
    """Center (k, 2) and radius (k) of each community's disc; an entity covers the same area everywhere.

    Communities with relationships to others make the middle of the map, the rest lies around them, smaller
    ones further out.
    """
    sizes = np.bincount(labels)
    radii = np.sqrt(sizes.astype(np.float64))
    centers = np.zeros((len(sizes), 2))
    between, strength = _quotient(labels, edges, weights)
    linked, local = np.unique(between, return_inverse=True)
    reach = 0.0
    if len(linked):
        start = spiral(np.argsort(np.argsort(-sizes[linked], kind="stable")))
        pairs = local.reshape(-1, 2)
        expected = radii[between[:, 0]] * radii[between[:, 1]]
        pull = np.sqrt(strength / expected)
        placed = _forces(len(linked), pairs, pull / pull.mean(), start, 500)
        area = radii[linked] ** 2
        placed = _fill_disc(placed, np.sqrt(area.sum() / _MAP_FILL), area)
        centers[linked] = _push_apart(placed, radii[linked])
        reach = float((np.hypot(*centers[linked].T) + radii[linked]).max())
    rest = np.setdiff1d(np.arange(len(sizes)), linked)
    rest = rest[np.argsort(-sizes[rest], kind="stable")]
    area = np.cumsum(sizes[rest]) - sizes[rest] / 2
    # Each disc gets as much area of the spiral as it covers, so that the density of the map is even.
    distance = np.sqrt(reach**2 + area / _MAP_FILL) + (radii[rest] if reach else 0)
    angle = np.arange(len(rest)) * GOLDEN_ANGLE
    centers[rest] = np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])
    return centers, radii


def _place_in_discs(labels: Ints, edges: Ints, weights: Floats, degree: Ints, radii: Floats) -> Floats:
    """Position of each node relative to the center of its disc."""
    inside = labels[edges[:, 0]] == labels[edges[:, 1]]
    offsets = np.zeros((len(labels), 2))
    several = np.flatnonzero(np.bincount(labels) > 1)
    for number, nodes, own, own_weights in subgraphs(labels, edges[inside], weights[inside], several):
        start = spiral(np.argsort(np.argsort(-degree[nodes], kind="stable")))
        pull = np.sqrt(own_weights)
        placed = _forces(len(nodes), own, pull / pull.mean(), start, 100) if len(own) else start
        offsets[nodes] = _fill_disc(placed, radii[number] * DISC_FILL)
    return offsets


def _quotient(labels: Ints, edges: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Edges (m, 2) between communities, smaller number first, and the summed weights of relationships."""
    pairs = np.sort(labels[edges], axis=1)
    outside = pairs[:, 0] != pairs[:, 1]
    between, inverse = np.unique(pairs[outside], axis=0, return_inverse=True)
    strength = np.bincount(inverse.ravel(), weights=weights[outside], minlength=len(between))
    return between.astype(np.int64), strength.astype(np.float64)


def _forces(size: int, edges: Ints, weights: Floats, start: Floats, rounds: int) -> Floats:
    graph = igraph.Graph(n=size, edges=edges)
    found = graph.layout_fruchterman_reingold(
        weights=weights, niter=rounds, seed=start, grid="grid" if size > _GRID_FROM else "nogrid"
    )
    return np.asarray(found.coords, dtype=np.float64)


def spiral(rank: Ints) -> Floats:
    """Points at even density, rank 0 in the center (phyllotaxis: Vogel 1979)."""
    distance, angle = np.sqrt(rank + 0.5), rank * GOLDEN_ANGLE
    return np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])


def _fill_disc(points: Floats, radius: float, area: Floats | None = None) -> Floats:
    """`points` moved along their rays from the centroid to fill a disc, each its share by `area`.

    Half by distance, half by rank: distance alone lets one outlier press all the others together.
    """
    points = points - points.mean(axis=0)
    distance = np.hypot(points[:, 0], points[:, 1])
    order = np.argsort(distance, kind="stable")
    area = np.ones(len(points)) if area is None else area
    covered = np.empty(len(points))
    covered[order] = np.cumsum(area[order]) - area[order] / 2
    wanted = (distance / (distance.max() or 1.0) + np.sqrt(covered / area.sum())) / 2
    return points * (radius * wanted / np.where(distance > 0, distance, 1.0))[:, None]


def _push_apart(centers: Floats, radii: Floats) -> Floats:
    """`centers` after rounds in which overlapping discs push each other apart, the smaller moving more."""
    centers = centers.copy()
    areas = radii**2
    for _ in range(_PUSH_ROUNDS):
        larger, smaller = _overlapping(centers, radii)
        if not larger.size:
            break
        way = centers[smaller] - centers[larger]
        distance = np.hypot(way[:, 0], way[:, 1])
        overlap = radii[larger] + radii[smaller] - distance
        angle = smaller * GOLDEN_ANGLE  # two discs with the same center move apart in a fixed direction
        apart = np.column_stack([np.cos(angle), np.sin(angle)])
        far = distance > 1e-9
        apart[far] = way[far] / distance[far, None]
        share = areas[larger] / (areas[larger] + areas[smaller])
        np.add.at(centers, smaller, apart * (overlap * share)[:, None])
        np.add.at(centers, larger, -apart * (overlap * (1 - share))[:, None])
    return centers


def _overlapping(centers: Floats, radii: Floats) -> tuple[Ints, Ints]:
    """The pairs of discs that overlap by more than a thousandth of the smaller one's radius: `larger, smaller`, sorted.

    A sweep along x: the larger disc of a pair finds the smaller one, whose center is within twice its radius.
    """
    order = np.argsort(centers[:, 0], kind="stable")
    (x, y), radius = centers[order].T, radii[order]
    first = np.searchsorted(x, x - 2 * radius)
    n_near = np.searchsorted(x, x + 2 * radius, side="right") - first
    before = np.cumsum(n_near) - n_near  # pairs of the discs to the left
    found = []
    for discs in np.split(np.arange(len(x)), np.flatnonzero(np.diff(np.cumsum(n_near) // _PAIRS_PER_PART)) + 1):
        larger = np.repeat(discs, n_near[discs])
        smaller = np.arange(len(larger)) + before[discs[0]] + np.repeat((first - before)[discs], n_near[discs])
        close = np.flatnonzero(np.abs(y[smaller] - y[larger]) < 2 * radius[larger])
        larger, smaller = larger[close], smaller[close]
        overlap = radius[larger] + radius[smaller] - np.hypot(x[smaller] - x[larger], y[smaller] - y[larger])
        hit = overlap > 1e-3 * radius[smaller]
        found.append(np.column_stack([order[larger[hit]], order[smaller[hit]]]))
    larger, smaller = np.concatenate(found).T
    is_pair = (radii[smaller] < radii[larger]) | ((radii[smaller] == radii[larger]) & (smaller > larger))
    larger, smaller = larger[is_pair], smaller[is_pair]
    sorted_pairs = np.lexsort((smaller, larger))
    return larger[sorted_pairs], smaller[sorted_pairs]
