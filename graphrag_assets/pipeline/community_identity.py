"""Matches the communities of two runs, so that a community keeps its id.

A community's key is a hash of its entities, so it changes with every added entity. Its id must survive such
changes: reports, numbers and citations depend on it. Communities are therefore compared by their entities, and
one that overlaps its predecessor well enough inherits the id.
"""

from typing import NamedTuple

import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.store import schema
from graphrag_assets.store.polars_schema import polars_schema

HISTORY_SCHEMA = polars_schema(schema.COMMUNITY_HISTORY, "revision")


class Matched(NamedTuple):
    """`ids`: `key, id`, one row per current community. `history`: one row per event."""

    ids: pl.DataFrame
    history: pl.DataFrame


def match_communities(previous: pl.DataFrame, current: pl.DataFrame, threshold: float = 0.5) -> Matched:
    """The ids of the current communities, inherited from the previous ones where they match.

    `previous` has `id, level, entity_ids`; `current` has `key, level, entity_ids`.

    A pair can match when its Jaccard index (shared entities / entities of either) is at least `threshold`.
    Pairs are taken best first: by Jaccard, then same level before another, then more shared entities, then id
    and key; each side is taken once. A match may cross levels: a community that moved up a level because its
    siblings left is still itself. A current community without a match gets its key as id, or a hash of the
    key when that id is in use, now or by a predecessor.

    `history` has `event, level, community_id, other_id, jaccard, size`, only for what changed; `community_id`
    is a community of the present with its level and size, except for "died"; `other_id` is a predecessor:

    - born: the id is new. Neither other_id nor jaccard.
    - died: no community has the predecessor's id any more; id, level and size are the predecessor's.
    - changed: the id was kept, entities or level are not the same; jaccard with itself before.
    - split: at least two communities come mainly (more than half of their entities) from one predecessor of
      the same level; one row for each of them, other_id is that predecessor.
    - merged: the community has taken in more than half of the entities of at least two predecessors of its
      level; one row for each of them in other_id.

    Both results are sorted and do not depend on the order of rows.
    """
    overlaps = _overlaps(previous, current)
    kept = _best_pairs(overlaps.filter(pl.col("jaccard") >= threshold))
    ids = _name(previous["id"], current["key"], kept)
    return Matched(ids, _history(previous, current.join(ids, on="key"), overlaps))


def _overlaps(previous: pl.DataFrame, current: pl.DataFrame) -> pl.DataFrame:
    """One row per pair with an entity in common, found through their entities.

    Columns: `id, level, size, key, new_level, new_size, shared, jaccard`.
    """
    size = pl.col("entity_ids").list.len().cast(pl.Int64)
    before = previous.select("id", "level", "entity_ids", size=size)
    after = current.select("key", "entity_ids", new_level="level", new_size=size)
    return (
        before.explode("entity_ids")
        .join(after.explode("entity_ids"), on="entity_ids")
        .group_by("id", "key")
        .agg(pl.col("level", "size", "new_level", "new_size").first(), shared=pl.len().cast(pl.Int64))
        .with_columns(jaccard=pl.col("shared") / (pl.col("size") + pl.col("new_size") - pl.col("shared")))
    )


def _best_pairs(candidates: pl.DataFrame) -> dict[str, str]:
    """Key to id, greedily; no key and no id twice. A few candidates per community, so one pass is enough."""
    same_level = pl.col("level") == pl.col("new_level")
    ordered = candidates.sort("jaccard", same_level, "shared", "id", "key", descending=[True, True, True, False, False])
    kept: dict[str, str] = {}
    taken: set[str] = set()
    for id_, key in ordered.select("id", "key").iter_rows():
        if key not in kept and id_ not in taken:
            kept[key] = id_
            taken.add(id_)
    return kept


def _name(previous_ids: pl.Series, keys: pl.Series, kept: dict[str, str]) -> pl.DataFrame:
    """`key, id` sorted by key. A new id is the key itself if that is unused: an id is never assigned twice."""
    ordered = sorted(keys.to_list())
    known = set(previous_ids.to_list())
    used = known.union(ordered)
    ids = dict(kept)
    for key in ordered:
        if key in ids:
            continue
        ids[key], attempt = key, 0
        if key in known:
            while ids[key] in used:
                attempt += 1
                ids[key] = stable_id("community", key, attempt)
            used.add(ids[key])
    rows = {"key": ordered, "id": [ids[key] for key in ordered]}
    return pl.DataFrame(rows, {"key": pl.String, "id": pl.String})


def _history(previous: pl.DataFrame, current: pl.DataFrame, overlaps: pl.DataFrame) -> pl.DataFrame:
    """The events of `match_communities`; `current` has its `id` by now."""
    pairs = overlaps.rename({"id": "other_id", "size": "old_size"}).join(current.select("key", "id"), on="key")
    same_level = pl.col("level") == pl.col("new_level")
    is_changed = (pl.col("id") == pl.col("other_id")) & ((pl.col("jaccard") < 1) | ~same_level)
    siblings = pairs.filter(same_level)
    split = siblings.filter(2 * pl.col("shared") > pl.col("new_size")).filter(pl.len().over("other_id") > 1)
    merged = siblings.filter(2 * pl.col("shared") > pl.col("old_size")).filter(pl.len().over("key") > 1)
    alone = [
        rows.select("level", event=pl.lit(event), community_id="id", size=pl.col("entity_ids").list.len())
        for event, rows in (
            ("born", current.join(previous, on="id", how="anti")),
            ("died", previous.join(current, on="id", how="anti")),
        )
    ]
    of_pairs = [
        rows.select(*other, "jaccard", event=pl.lit(event), level="new_level", community_id="id", size="new_size")
        for event, rows, other in (
            ("changed", pairs.filter(is_changed), ()),
            ("split", split, ("other_id",)),
            ("merged", merged, ("other_id",)),
        )
    ]
    events = pl.concat([pl.DataFrame(schema=HISTORY_SCHEMA), *alone, *of_pairs], how="diagonal_relaxed")
    return events.sort("level", "event", "community_id", "other_id")
