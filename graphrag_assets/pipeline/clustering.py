"""Communities of the entity graph: hierarchical Leiden over all components.

Level 0 is the Leiden partition of the whole graph at modularity (Traag, Waltman, van Eck 2019,
doi:10.1038/s41598-019-41695-z; igraph's implementation). A community of more than `max_cluster_size` entities
is partitioned again by itself, level by level, as the hierarchy of arXiv 2404.16130 asks for. A community's split
depends only on its entities, its relationships and the seed, so an unchanged community is split the same way again.

A community without parts by modularity, such as a clique, is cut by the hashes of its entities' ids: an arbitrary cut,
but a stable one. Every community is connected, so what cannot be divided into connected parts of several entities stays
larger than the maximum: a hub with its leaves. See `split_from_scratch`.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import igraph
import numpy as np
import polars as pl
from numpy.typing import NDArray

from graphrag_assets.errors import GraphRAGError
from graphrag_assets.ids import number_of, stable_id

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_RESOLUTIONS = (1.0, 1.5, 2.0, 3.0)
"""Resolutions at which parts of a large community are looked for, in turn."""

MAX_REMAINDER = 0.9
"""Maximum size of the largest part of a split, as a share of the community. A split that moves fewer entities is no
level of the hierarchy: from a hub with 365 leaves, Leiden peels off two leaves at a time."""

N_ITERATIONS = 10
"""Of Leiden, a fixed number: "until stable" (-1) of igraph 1.0 never ended on one of 2,614 communities of a test graph,
43 nodes with 78 edges whose partition had long stopped changing."""

_RNG_LOCK = threading.RLock()

Split = Callable[[int, Ints, Ints, Ints, Floats], Ints | None]
"""Of one community: level, the community number of every node, its nodes, the edges between positions in these,
their weights; returns the part of each of its nodes, from 0, or None when it stays whole."""

MEMBERS_SCHEMA: dict[str, type[pl.DataType]] = {
    "level": pl.Int64,
    "cluster": pl.String,
    "parent": pl.String,
    "entity_id": pl.String,
    "born_level": pl.Int64,
}


@dataclass(frozen=True)
class ClusterOptions:
    """How the graph is cut: communities of more than `max_cluster_size` entities are split.

    Any `seed` is as good; a fixed one makes the same index of the same documents.
    """

    max_cluster_size: int = 10
    seed: int = 0xDEADBEEF


@contextmanager
def seeded(seed: int) -> Iterator[random.Random]:
    """igraph draws its random numbers from a generator seeded with `seed` while the block runs.

    The generator is one per process in igraph, so the block is also a lock. Afterwards igraph draws from
    Python's `random` module again, its default.
    """
    with _RNG_LOCK:
        rng = random.Random(seed)
        igraph.set_random_number_generator(rng)
        try:
            yield rng
        finally:
            igraph.set_random_number_generator(random)


def communities_of(members: pl.DataFrame) -> pl.DataFrame:
    """One row per community of `members` (see `members_frame`): key, level, parent, entity_ids (sorted), size."""
    born = members.filter(pl.col("level") == pl.col("born_level")).rename({"cluster": "key"})
    return born.group_by("key", "level", "parent").agg(
        pl.col("entity_id").sort().alias("entity_ids"), size=pl.len().cast(pl.Int64)
    )


def disconnected_communities(members: pl.DataFrame, relationships: pl.DataFrame) -> pl.Series:
    """Return the communities whose entities are not all connected inside the community; distinct, sorted.

    `members` has `community, entity_id`, on any number of levels; `relationships` has `source_id, target_id`.
    """
    nodes = members.select("community", "entity_id").unique().sort("community", "entity_id").with_row_index("node")
    sources = nodes.select("community", source_id="entity_id", a="node")
    targets = nodes.select("community", target_id="entity_id", b="node")
    edges = relationships.join(sources, on="source_id").join(targets, on=["target_id", "community"])
    graph = igraph.Graph(n=nodes.height, edges=edges.select("a", "b").to_numpy().astype(np.int64).reshape(-1, 2))
    part = pl.Series("part", graph.connected_components().membership, dtype=pl.Int64)
    broken = nodes.with_columns(part).group_by("community").agg(pl.col("part").n_unique()).filter(pl.col("part") > 1)
    return broken["community"].sort()


def edge_arrays(ids: pl.Series, relationships: pl.DataFrame) -> tuple[Ints, Floats]:
    """Undirected edges between positions in `ids`, shape (m, 2), smaller end first, sorted; their weights.

    Self-loops are left out, parallel rows summed in a fixed order, so that the sums do not depend on the
    order of rows. Raises `GraphRAGError` for an end that is not in `ids` or a weight that is not a number
    above 0.
    """
    position = pl.DataFrame({"id": ids, "position": np.arange(len(ids), dtype=np.int64)})
    rows = (
        relationships.select(pl.col("source_id", "target_id").cast(pl.String), pl.col("weight").cast(pl.Float64))
        .join(position.select(source_id="id", a="position"), on="source_id", how="left")
        .join(position.select(target_id="id", b="position"), on="target_id", how="left")
    )
    lost = rows.filter(pl.col("a").is_null() | pl.col("b").is_null())
    if lost.height:
        source, target = lost.select("source_id", "target_id").row(0)
        raise GraphRAGError(
            f"{lost.height} relationships refer to a missing entity, such as {source} - {target}; rebuild the entities"
        )
    good = pl.col("weight").is_finite() & (pl.col("weight") > 0)
    bad = rows.filter(~good.fill_null(False))
    if bad.height:
        source, target, weight = bad.select("source_id", "target_id", "weight").row(0)
        raise GraphRAGError(
            f"{bad.height} relationships have a weight that is not a number above 0, "
            f"such as {source} - {target}: {weight}"
        )
    rows = rows.filter(pl.col("a") != pl.col("b"))
    ends = np.sort(rows.select("a", "b").to_numpy().reshape(-1, 2), axis=1)
    weights = rows["weight"].to_numpy()
    if not len(ends):
        return ends, weights
    order = np.lexsort((weights, ends[:, 1], ends[:, 0]))
    ends, weights = ends[order], weights[order]
    starts = np.flatnonzero(np.r_[True, (ends[1:] != ends[:-1]).any(axis=1)])
    return ends[starts], np.add.reduceat(weights, starts)


def hierarchy(
    labels: Ints, edges: Ints, weights: Floats, max_cluster_size: int, split: Split
) -> tuple[list[Ints], list[Ints]]:
    """Per level the community number of each node, and per level the parents of the communities born there.

    `labels` is level 0. `split` is asked about communities of more than `max_cluster_size` nodes. Numbers are given
    in the order of birth and never twice, so one number means one community on all levels.
    """
    count = int(labels.max()) + 1
    levels, parents = [labels], [np.full(count, -1, dtype=np.int64)]
    candidates = np.arange(count)
    while True:
        candidates = candidates[np.bincount(labels, minlength=count)[candidates] > max_cluster_size]
        inside = is_inside(labels, edges)
        edges, weights = edges[inside], weights[inside]
        above, labels, born_from = labels, labels.copy(), []
        for number, nodes, inner, own_weights in subgraphs(above, edges, weights, candidates):
            parts = split(len(levels) - 1, above, nodes, inner, own_weights)
            if parts is not None:
                labels[nodes] = parts + count
                born = int(parts.max()) + 1
                born_from.append(np.full(born, number, dtype=np.int64))
                count += born
        if not born_from:
            return levels, parents
        parents.append(np.concatenate(born_from))
        levels.append(labels)
        candidates = np.arange(count - len(parents[-1]), count)


def subgraphs(labels: Ints, edges: Ints, weights: Floats, wanted: Ints) -> Iterator[tuple[int, Ints, Ints, Floats]]:
    """Of each community in `wanted`: number, nodes (ascending), edges between positions in these, weights.

    `edges` holds only edges inside communities. One sort for all instead of one search per community.
    """
    by_label = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_label], np.arange(labels.max() + 2))
    local = np.empty(len(labels), dtype=np.int64)
    local[by_label] = np.arange(len(labels)) - starts[labels[by_label]]
    edge_labels = labels[edges[:, 0]]
    edges_by_label = np.argsort(edge_labels, kind="stable")
    edge_starts = np.searchsorted(edge_labels[edges_by_label], np.arange(labels.max() + 2))
    for number in wanted.tolist():
        inner = edges_by_label[edge_starts[number] : edge_starts[number + 1]]
        yield number, by_label[starts[number] : starts[number + 1]], local[edges[inner]], weights[inner]


def split_from_scratch(ids: pl.Series, edges: Ints, weights: Floats, max_cluster_size: int) -> Ints | None:
    """Parts of a community that is too large, given by the ids of its entities, or None when it stays whole.

    Parts must be better than the whole by the modularity inside the community: denser within than by chance.
    Leiden at resolution 1 nearly always finds such parts if there are any; where it does not, higher
    ones are tried. A community without such parts is cut by the hashes of the ids (`groups_by_hash`); what such a cut
    disconnects goes with its strongest neighbor. A hub with its leaves stays whole that way.
    """
    for resolution in _RESOLUTIONS:
        parts = leiden(len(ids), edges, weights, resolution)
        if is_level(parts) and is_better_than_whole(parts, edges, weights):
            return parts
    parts = join_lone_nodes(connected_parts(groups_by_hash(ids, max_cluster_size), edges), edges, weights)
    return parts if is_level(parts) else None


def groups_by_hash(ids: pl.Series, max_size: int) -> Ints:
    """Return the group of each id, in groups of at most `max_size`: halved by the bits of their hashes, the first bit
    first.

    A bit that would leave an id alone is skipped, so three ids stay together. A new id changes the group that it enters
    and, rarely, its neighbor.
    """
    hashes = np.array([number_of(f"cut {id}") for id in ids], dtype=np.uint64)
    groups = np.zeros(len(ids), dtype=np.int64)
    for bit in range(63, -1, -1):
        sizes = np.bincount(groups)
        if sizes.max() <= max_size:
            break
        is_set = (hashes >> np.uint64(bit)).astype(np.int64) & 1
        ones = np.bincount(groups, weights=is_set)
        is_halved = (sizes > max_size) & (ones > 1) & (sizes - ones > 1)
        groups = by_first(2 * groups + np.where(is_halved[groups], is_set, 0))
    return groups


def is_level(parts: Ints) -> bool:
    """Whether a split moves enough entities out of the largest part to be a level of the hierarchy."""
    return bool(np.bincount(parts).max() <= MAX_REMAINDER * len(parts))


def is_better_than_whole(parts: Ints, edges: Ints, weights: Floats) -> bool:
    """Whether there are several parts, of a modularity above that of one community of all nodes, which is 0."""
    return bool(parts.max() > 0 and modularity(parts, edges, weights) > 1e-9)


def modularity(labels: Ints, edges: Ints, weights: Floats) -> float:
    """Modularity of the communities `labels` (Newman and Girvan 2004)."""
    if not len(edges):
        return 0.0
    graph = igraph.Graph(n=len(labels), edges=edges)
    return float(graph.modularity(labels.tolist(), weights.tolist(), directed=False))


def leiden(size: int, edges: Ints, weights: Floats, resolution: float = 1.0) -> Ints:
    """Part of each node, numbered from 0 by smallest node. A `resolution` above 1 gives more, smaller parts.

    Every part is connected, and a node is only alone when it has no neighbors.
    """
    if not len(edges):
        return np.arange(size, dtype=np.int64)
    clustering = igraph.Graph(n=size, edges=edges).community_leiden(
        "modularity", weights=weights, resolution=resolution, n_iterations=N_ITERATIONS
    )
    labels = np.asarray(clustering.membership, dtype=np.int64)
    # Leiden's communities are connected by construction. This ensures it for any implementation.
    return join_lone_nodes(connected_parts(labels, edges), edges, weights)


def is_inside(labels: Ints, edges: Ints) -> NDArray[np.bool_]:
    """Return of each edge whether both ends are in one community."""
    return np.asarray(labels[edges[:, 0]] == labels[edges[:, 1]])


def connected_parts(labels: Ints, edges: Ints) -> Ints:
    """`labels` with each community divided into its connected parts."""
    parts = igraph.Graph(n=len(labels), edges=edges[is_inside(labels, edges)]).connected_components()
    return np.asarray(parts.membership, dtype=np.int64)


def join_lone_nodes(labels: Ints, edges: Ints, weights: Floats) -> Ints:
    """`labels` with each part of one node joined to the part of its strongest neighbor in a larger part.

    Parts are numbered from 0 by smallest node.
    """
    near, far = np.r_[edges[:, 0], edges[:, 1]], np.r_[edges[:, 1], edges[:, 0]]
    both = np.r_[weights, weights]
    labels = labels.copy()
    while True:
        lone = np.bincount(labels)[labels] == 1
        ties = np.flatnonzero(lone[near] & ~lone[far])
        if not len(ties):
            break
        ties = ties[np.lexsort((far[ties], -both[ties], near[ties]))]
        nodes, first = np.unique(near[ties], return_index=True)
        labels[nodes] = labels[far[ties[first]]]
    return by_first(labels)


def by_first(labels: Ints) -> Ints:
    """`labels` numbered from 0 in the order of their first nodes."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def members_frame(ids: pl.Series, levels: list[Ints], parents: list[Ints]) -> pl.DataFrame:
    """One row per entity and level, sorted by both, from community numbers per level and node, and their parents.

    Columns: level, cluster, parent, entity_id, born_level. `cluster` is the community's key, a hash of the level where
    it was born (where it first appears) and of its entities. A community that is not split stays its entities'
    community on all deeper levels under the same key, with the same `parent` (null when born at level 0) and
    `born_level`.
    """
    names = ids.to_list()
    born_level = np.repeat(np.arange(len(parents)), [len(born) for born in parents])
    keys = [""] * len(born_level)
    for level, labels in enumerate(levels):
        order = np.argsort(labels, kind="stable")
        numbers, starts = np.unique(labels[order], return_index=True)
        for number, nodes in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            if born_level[number] == level:
                keys[number] = stable_id("community", level, *(names[node] for node in nodes.tolist()))
    key = pl.Series("cluster", keys, dtype=pl.String)
    above = np.concatenate(parents)
    parent = pl.select(pl.when(pl.Series(above >= 0)).then(key.gather(np.maximum(above, 0)))).to_series()
    return pl.concat(
        pl.DataFrame(
            {
                "level": pl.repeat(level, len(ids), dtype=pl.Int64, eager=True),
                "cluster": key.gather(labels),
                "parent": parent.gather(labels),
                "entity_id": ids,
                "born_level": born_level[labels],
            },
            schema=MEMBERS_SCHEMA,
        )
        for level, labels in enumerate(levels)
    )
