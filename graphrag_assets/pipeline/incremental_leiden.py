"""Incremental clustering: starts from the last partition and moves only nodes near the change.

Clustering from scratch after a small change replaces about half of all communities of a large graph, at the same
modularity: a graph has many partitions that are equally good, and Leiden finds another one. Each new community
is a report to be written again. So from the second run on:

1. The **frontier** is found by comparing the graph with the one of the last run: the ends of relationships that
   are new, deleted, or of a weight changed by more than a tenth. (Another sentence about a hub changes the weights of
   all its relationships by a little: these do not count, but are measured against the weight that last counted, so
   that small changes add up.)
2. A community that deleted relationships have disconnected is split into its connected parts. All but the largest are
   added to the frontier.
3. Leiden moves the nodes of the frontier and no others (Traag's leidenalg, `is_membership_fixed`). Where a node left
   or joined a community, its neighbors there are the next frontier, until no node moves: as the dynamic frontier of
   Sahu 2024 (arXiv 2405.11658).
4. The same at each deeper level, inside each community, starting from its last sub-division. Relationships that
   came into a community or fell out of it because a node moved are changes there. A community whose nodes and
   relationships are as before keeps its sub-division, all the way down.

A fresh run at level 0 is made beside it, and takes its place when the modularity found is more than 1 % below.
"""

from typing import NamedTuple

import igraph
import leidenalg
import numpy as np
import polars as pl
from numpy.typing import NDArray

from graphrag_assets.pipeline.clustering import (
    MEMBERS_SCHEMA,
    N_ITERATIONS,
    ClusterOptions,
    Floats,
    Ints,
    by_first,
    connected_parts,
    edge_arrays,
    hierarchy,
    is_better_than_whole,
    is_inside,
    is_level,
    join_lone_nodes,
    leiden,
    members_frame,
    modularity,
    seeded,
    split_from_scratch,
)
from graphrag_assets.store import schema
from graphrag_assets.store.schema import polars_schema

Flags = NDArray[np.bool_]

WEIGHT_TOLERANCE = 0.1
"""A weight counts as changed when it differs by more than this share of the larger one."""

MODULARITY_LOSS = 0.01
"""Maximum loss of modularity, as a share of a fresh run's modularity."""

_ROUNDS = 20
"""Maximum rounds of moving nodes and adding neighbors to the frontier. Graphs of 100,000 nodes need three or four."""

EDGES_SCHEMA = polars_schema(schema.CLUSTERED_EDGES)


class Reclustered(NamedTuple):
    """`members` as of `members_frame`. `edges` (source_id, target_id, weight): the graph as it was seen, to be
    compared with by the next run. `modularity`: of level 0; `fresh_modularity`: that of a fresh run. `is_fresh`:
    whether a fresh run is the result."""

    members: pl.DataFrame
    edges: pl.DataFrame
    modularity: float
    fresh_modularity: float
    is_fresh: bool


def recluster(
    entity_ids: pl.Series,
    relationships: pl.DataFrame,
    previous_members: pl.DataFrame,
    previous_edges: pl.DataFrame,
    options: ClusterOptions | None = None,
    from_scratch: bool = False,
    tolerated_loss: float = MODULARITY_LOSS,
    keep_divisions: bool = False,
) -> Reclustered:
    """Return the communities of a graph, with minimal changes to those of the last run.

    `relationships` has source_id, target_id, weight; direction is ignored, weights of the same pair are summed,
    self-loops do not count. An entity without relationships is a community of its own. `previous_members` has `level,
    cluster, entity_id`, with any names of clusters; `previous_edges` is what the last run returned as `edges`. Without
    a previous graph, with `from_scratch`, or when modularity falls more than the share `tolerated_loss` below a fresh
    run's, it is a fresh run. With `keep_divisions` a community without a change at any of its members stays divided, or
    whole, whatever its size: others than this module may have divided it. The result does not depend on the order of
    rows.

    Raises `GraphRAGError` for a weight that is not above 0 or a relationship to an entity that is not there.
    """
    options = options or ClusterOptions()
    ids = entity_ids.cast(pl.String).unique().sort().rename("entity_id")
    if ids.is_empty():
        return Reclustered(pl.DataFrame(schema=MEMBERS_SCHEMA), pl.DataFrame(schema=EDGES_SCHEMA), 0.0, 0.0, True)
    edges, weights = edge_arrays(ids, relationships)
    with seeded(options.seed):
        fresh_labels = leiden(len(ids), edges, weights)
    fresh_modularity = modularity(fresh_labels, edges, weights)
    if not from_scratch and previous_members.height and previous_edges.height:
        change, before, free = _since_last(ids, edges, weights, previous_members, previous_edges)
        labels = _settle(before[0][: len(ids)], free, edges, change.settled, options)
        levels, parents = _divided(ids, labels, before, edges, change, options, keep_divisions)
        reached = modularity(levels[0], edges, weights)
        if reached >= fresh_modularity - tolerated_loss * max(abs(fresh_modularity), 1e-9):
            seen = _edge_frame(ids, edges, change.settled)
            return Reclustered(members_frame(ids, levels, parents), seen, reached, fresh_modularity, False)
    everything = np.ones(len(edges), np.bool_)
    whole = _Change(weights, everything, everything, edges[:0])
    levels, parents = _divided(ids, fresh_labels, [np.full(len(ids), -1)], edges, whole, options, False)
    seen = _edge_frame(ids, edges, weights)
    return Reclustered(members_frame(ids, levels, parents), seen, fresh_modularity, fresh_modularity, True)


class _Change(NamedTuple):
    """The difference between the current and the previous edges.

    Of each edge of now: `settled`, its weight as it last counted; `is_new`; `is_changed`, being new or of a
    weight that counts as changed. `deleted`: the deleted edges; their endpoints may be deleted as well.
    """

    settled: Floats
    is_new: Flags
    is_changed: Flags
    deleted: Ints


def _since_last(
    ids: pl.Series, edges: Ints, weights: Floats, previous_members: pl.DataFrame, previous_edges: pl.DataFrame
) -> tuple[_Change, list[Ints], Flags]:
    """Return what has changed, the `_levels` before, and which nodes may move at level 0: new ones, and the
    frontier.
    """
    then = [previous_members["entity_id"], previous_edges["source_id"], previous_edges["target_id"]]
    names = pl.concat([column.rename("entity_id") for column in then]).unique()
    all_ids = pl.concat([ids, names.filter(~names.is_in(ids.implode())).sort()])  # the deleted ones come last
    change = _compare(all_ids, edges, weights, previous_edges)
    before = _levels(all_ids, previous_members) or [np.full(len(all_ids), -1)]
    everywhere = np.zeros(len(all_ids), np.int64)
    frontier = _frontier(everywhere[: len(ids)], everywhere, edges, change)
    return change, before, (before[0][: len(ids)] < 0) | frontier


def _compare(entities: pl.Series, edges: Ints, weights: Floats, previous_edges: pl.DataFrame) -> _Change:
    """Compare the current and previous edges, as positions in `entities`: the current ones, then the deleted ones."""
    ends, then_weights = edge_arrays(entities, previous_edges)
    then = pl.DataFrame({"a": ends[:, 0], "b": ends[:, 1], "then": then_weights})
    now = pl.DataFrame({"a": edges[:, 0], "b": edges[:, 1]})
    before = now.join(then, on=["a", "b"], how="left", maintain_order="left")["then"].fill_null(0.0).to_numpy()
    is_changed = np.abs(weights - before) > WEIGHT_TOLERANCE * np.maximum(weights, before)
    return _Change(
        settled=np.where(is_changed, weights, before),
        is_new=before == 0,
        is_changed=is_changed,
        deleted=then.join(now, on=["a", "b"], how="anti").select("a", "b").to_numpy().reshape(-1, 2),
    )


def _levels(ids: pl.Series, previous_members: pl.DataFrame) -> list[Ints]:
    """Per level a number for the community that each entity was in, whatever its name; -1 for a new one."""
    entities = pl.DataFrame({"entity_id": ids})
    numbers = []
    for level in previous_members["level"].unique().sort():
        then = previous_members.filter(pl.col("level") == level).select("entity_id", "cluster")
        clusters = entities.join(then, on="entity_id", how="left", maintain_order="left")["cluster"]
        numbers.append(np.where(clusters.is_null(), -1, by_first(clusters.rank("dense").fill_null(0).to_numpy())))
    return numbers


def _divided(
    ids: pl.Series,
    labels: Ints,
    previous: list[Ints],
    edges: Ints,
    change: _Change,
    options: ClusterOptions,
    keep_divisions: bool,
) -> tuple[list[Ints], list[Ints]]:
    """Levels and parents as of `hierarchy`, from level 0 down."""
    frontiers: dict[int, Flags] = {}

    def split(level: int, labels: Ints, nodes: Ints, inner: Ints, own_weights: Floats) -> Ints | None:
        if level not in frontiers:
            frontiers[level] = _frontier(labels, previous[min(level, len(previous) - 1)], edges, change)
        start, free = previous[min(level + 1, len(previous) - 1)][nodes], frontiers[level][nodes]
        if keep_divisions and not free.any():
            return by_first(_pieces(by_first(start), inner)[0]) if start.min() < start.max() else None
        if len(nodes) <= options.max_cluster_size:
            return None
        if start.min() < start.max():
            # Without a frontier it is an unchanged community, and its parts are still connected.
            parts = _settle(start, free, inner, own_weights, options) if free.any() else by_first(start)
            if not free.any() or (is_level(parts) and is_better_than_whole(parts, inner, own_weights)):
                return parts
        rng.seed(options.seed)
        return split_from_scratch(ids.gather(nodes), inner, own_weights, options.max_cluster_size)

    with seeded(options.seed) as rng:
        smallest = 1 if keep_divisions else options.max_cluster_size
        return hierarchy(labels, edges, change.settled, smallest, split)


def _frontier(labels: Ints, then: Ints, edges: Ints, change: _Change) -> Flags:
    """Nodes at which the inside of the communities `labels` is not that of the communities `then`.

    They are the ends of edges that are inside now and were not or have another weight, and of those that were
    inside and are not. `then` goes on with the entities that are deleted.
    """
    now_inside = is_inside(labels, edges)
    was_inside = is_inside(then, edges) & (then[edges[:, 0]] >= 0) & ~change.is_new
    lost = change.deleted[is_inside(then, change.deleted)]
    frontier = np.zeros(len(labels), dtype=np.bool_)
    frontier[edges[(now_inside != was_inside) | (now_inside & change.is_changed)]] = True
    frontier[lost[lost < len(labels)]] = True
    return frontier


def _settle(start: Ints, free: Flags, edges: Ints, weights: Floats, options: ClusterOptions) -> Ints:
    """Communities from `start` by moving the `free` nodes and those that this affects.

    -1 in `start` is a node of its own. Communities are connected, and numbered by smallest node.
    """
    labels = np.where(start < 0, start.max() + 1 + np.arange(len(start)), start)
    labels, torn = _pieces(labels, edges)
    graph, free = igraph.Graph(n=len(labels), edges=edges), free | torn
    for _ in range(_ROUNDS if len(edges) else 0):
        if not free.any():
            break
        after, free = _pieces(_moved(graph, labels, free, weights, options), edges)
        free[edges[is_inside(after, edges) != is_inside(labels, edges)]] = True
        labels = after
    return join_lone_nodes(labels, edges, weights)


def _moved(graph: igraph.Graph, labels: Ints, free: Flags, weights: Floats, options: ClusterOptions) -> Ints:
    """Communities, with any numbers, after Leiden has moved the free nodes to where modularity is higher."""
    partition = leidenalg.RBConfigurationVertexPartition(graph, by_first(labels).tolist(), weights=weights.tolist())
    optimiser = leidenalg.Optimiser()
    optimiser.set_rng_seed(options.seed & 0x7FFFFFFF)
    enough, gained = 1e-12 * weights.sum(), 0.0
    for _ in range(N_ITERATIONS):
        gain = optimiser.optimise_partition(partition, n_iterations=1, is_membership_fixed=(~free).tolist())
        gained += gain
        if gain <= enough:
            break
    return np.asarray(partition.membership, dtype=np.int64) if gained > enough else labels


def _pieces(labels: Ints, edges: Ints) -> tuple[Ints, Flags]:
    """`labels` with only the largest connected part of each community left in it; which nodes are in other parts.

    Of equally large parts, the one with the first node counts as the largest.
    """
    parts = connected_parts(labels, edges)
    _, first, sizes = np.unique(parts, return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes, labels[first]))
    ordered = labels[first[order]]
    is_smaller = np.zeros(len(first), dtype=np.bool_)
    is_smaller[order[1:]] = ordered[1:] == ordered[:-1]
    torn = is_smaller[parts]
    return np.where(torn, labels.max() + 1 + parts, labels), torn


def _edge_frame(ids: pl.Series, edges: Ints, weights: Floats) -> pl.DataFrame:
    return pl.DataFrame(
        {"source_id": ids.gather(edges[:, 0]), "target_id": ids.gather(edges[:, 1]), "weight": weights},
        schema=EDGES_SCHEMA,
    )
