"""Completes the communities of an index: level-complete, nested and connected, as this project's clustering has them.

Every entity is in one community at each level, also those that GraphRAG leaves out: ends of relationships that are no
entities there, and the small components that it drops by default. The ordinary clustering then starts from these
communities and finds no change.
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_assets.extras.interop.left_out import Counts
from graphrag_assets.pipeline.clustering import Ints, connected_parts, edge_arrays, smaller_parts


class Hierarchy(NamedTuple):
    """`members`: level, community, entity_id, level-complete for all entities that are in any; communities keep
    their numbers of the index; disconnected pieces of them have numbers below 0. `communities`: id, community, level,
    entity_ids of those of the index that have members. Communities are matched by these ids, so they include entities
    that are now members of others."""

    members: pl.DataFrame
    communities: pl.DataFrame


def hierarchy_of(
    communities: pl.DataFrame,
    members: pl.DataFrame,
    keys: pl.DataFrame,
    entities: pl.DataFrame,
    relationships: pl.DataFrame,
    counts: Counts,
) -> Hierarchy:
    """The hierarchy over the entities of `keys` and those they are connected with.

    Args:
        communities, members: as in `Source`.
        keys: given id and entity_id of the entities of the index; several may have become one.
        entities: id, those that are in no community yet. relationships: source_id, target_id, weight, among them.
        counts: repairs are added.
    """
    placed = (
        members.join(keys, left_on="entity", right_on="id", maintain_order="left")
        .unique(["level", "entity_id", "community"], maintain_order=True)
        .sort("level", "community", maintain_order=True)
    )
    first = placed.unique(["level", "entity_id"], keep="first", maintain_order=True)
    counts["communities", "memberships in a second community of a level, left out"] += placed.height - first.height
    ids = entities["id"].sort()
    edges, weights = edge_arrays(ids, relationships)
    levels = _levels(ids, first)
    if not levels:
        return Hierarchy(
            _EMPTY, communities.select("id", "community", "level", entity_ids=pl.lit([], pl.List(pl.String))).head(0)
        )
    joined = _join_neighbors(levels, edges, weights)
    counts["entities", "without a community, joined to that of their strongest relationship"] += joined
    levels, n_pieces = _nested_and_connected(levels, edges)
    counts["communities", "pieces disconnected from their community, made separate communities"] += n_pieces
    complete = _members_frame(ids, levels)
    own = communities.select("id", "community", "level").unique("community", keep="first", maintain_order=True)
    named = pl.concat([complete, first.select(complete.columns)]).unique(["community", "level", "entity_id"])
    lists = named.group_by("community", "level").agg(pl.col("entity_id").sort().alias("entity_ids"))
    kept = own.join(lists, on=["community", "level"], maintain_order="left")
    counts["communities", "without members, left out"] += communities.height - kept.height
    return Hierarchy(complete, kept)


_EMPTY = pl.DataFrame(schema={"level": pl.Int64, "community": pl.Int64, "entity_id": pl.String})
_NONE = np.iinfo(np.int64).min


def _levels(ids: pl.Series, members: pl.DataFrame) -> list[Ints]:
    """The community of each entity, by level; an unsplit community is its members' community at deeper levels."""
    if members.is_empty():
        return []
    entities = pl.DataFrame({"entity_id": ids})
    levels = []
    for level in range(members.select(pl.col("level").max()).item() + 1):
        at_level = members.filter(pl.col("level") == level).select("entity_id", "community")
        found = entities.join(at_level, on="entity_id", how="left", maintain_order="left")["community"]
        levels.append(np.array(found.fill_null(_NONE), dtype=np.int64))
    for level in range(1, len(levels)):
        levels[level] = np.where(levels[level] == _NONE, levels[level - 1], levels[level])
    for level in range(len(levels) - 2, -1, -1):
        levels[level] = np.where(levels[level] == _NONE, levels[level + 1], levels[level])
    return levels


def _join_neighbors(levels: list[Ints], edges: Ints, weights: np.ndarray) -> int:
    """Give entities without a community those of their most strongly related neighbors, in place.

    Returns their number. Entities without a relationship to any community get none.
    """
    n_joined = 0
    near, far = np.r_[edges[:, 0], edges[:, 1]], np.r_[edges[:, 1], edges[:, 0]]
    both = np.r_[weights, weights]
    while True:
        deepest = levels[-1]
        ties = (deepest[near] == _NONE) & (deepest[far] != _NONE)
        if not ties.any():
            return n_joined
        table = pl.DataFrame(
            {"entity": near[ties], "neighbor": far[ties], "community": deepest[far[ties]], "weight": both[ties]}
        )
        best = (
            table.group_by("entity", "community")
            .agg(pl.col("weight").sum(), pl.col("neighbor").min())
            .sort("entity", pl.col("weight").neg(), "community")
            .unique("entity", keep="first", maintain_order=True)
        )
        entity, neighbor = best["entity"].to_numpy(), best["neighbor"].to_numpy()
        for labels in levels:
            labels[entity] = labels[neighbor]
        n_joined += len(entity)


def _nested_and_connected(levels: list[Ints], edges: Ints) -> tuple[list[Ints], int]:
    """`levels` with each community connected and within one of the level above, and the number of split-off pieces.

    The largest piece of a community keeps its number.
    """
    above = np.zeros(len(levels[0]), dtype=np.int64)
    found: list[Ints] = []
    known: dict[bytes, int] = {}
    for given in levels:
        pairs = np.unique(np.column_stack([above, given]), axis=0, return_inverse=True)[1].ravel()
        parts = connected_parts(pairs.astype(np.int64), edges)
        numbers = given.copy()
        by_part = np.argsort(parts, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(parts))])
        is_in_community = given[by_part[starts[:-1]]] != _NONE
        for part in np.flatnonzero(smaller_parts(given, parts) & is_in_community):
            nodes = by_part[starts[part] : starts[part + 1]]
            name = nodes.tobytes()
            if name not in known:  # a piece that was split off on the level above stays the same piece
                known[name] = -1 - len(known)
            numbers[nodes] = known[name]
        found.append(numbers)
        above = parts
    return found, len(known)


def _members_frame(ids: pl.Series, levels: list[Ints]) -> pl.DataFrame:
    frames = [
        pl.DataFrame({"community": labels, "entity_id": ids}).select(pl.lit(level, pl.Int64).alias("level"), pl.all())
        for level, labels in enumerate(levels)
    ]
    return pl.concat(frames).filter(pl.col("community") != _NONE)
