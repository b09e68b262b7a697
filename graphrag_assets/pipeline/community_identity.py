"""Which community of this index is which community of the last one.

A community's key is made of its entities, so one entity more and the key is another. Its id must outlive such
changes: reports, numbers and citations hang on it. Communities are therefore compared by their entities, and
one that overlaps its predecessor well enough inherits the id.
"""

from dataclasses import dataclass

import polars as pl

from graphrag_assets.ids import stable_id

IDS_SCHEMA: dict[str, type[pl.DataType]] = {"key": pl.String, "id": pl.String}

HISTORY_SCHEMA: dict[str, type[pl.DataType]] = {
    "event": pl.String,
    "level": pl.Int64,
    "community_id": pl.String,
    "other_id": pl.String,
    "jaccard": pl.Float64,
    "size": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class Matched:
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
    before = previous.select("id", "level", pl.col("entity_ids").list.len().cast(pl.Int64).alias("size"), "entity_ids")
    after = current.select(
        "key",
        pl.col("level").alias("new_level"),
        pl.col("entity_ids").list.len().cast(pl.Int64).alias("new_size"),
        "entity_ids",
    )
    return (
        before.explode("entity_ids")
        .drop_nulls("entity_ids")
        .join(after.explode("entity_ids").drop_nulls("entity_ids"), on="entity_ids")
        .group_by("id", "key")
        .agg(pl.col("level", "size", "new_level", "new_size").first(), pl.len().cast(pl.Int64).alias("shared"))
        .with_columns(jaccard=pl.col("shared") / (pl.col("size") + pl.col("new_size") - pl.col("shared")))
    )


def _best_pairs(candidates: pl.DataFrame) -> dict[str, str]:
    """Key to id, greedily; no key and no id twice. A few candidates per community, so one pass is enough."""
    ordered = candidates.sort(
        pl.col("jaccard"),
        pl.col("level") == pl.col("new_level"),
        pl.col("shared"),
        pl.col("id"),
        pl.col("key"),
        descending=[True, True, True, False, False],
    )
    kept: dict[str, str] = {}
    taken: set[str] = set()
    for id_, key in ordered.select("id", "key").iter_rows():
        if key not in kept and id_ not in taken:
            kept[key] = id_
            taken.add(id_)
    return kept


def _name(previous_ids: pl.Series, keys: pl.Series, kept: dict[str, str]) -> pl.DataFrame:
    """`key, id` sorted by key. A new id is the key itself where that is free: an id is never given twice."""
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
    return pl.DataFrame({"key": ordered, "id": [ids[key] for key in ordered]}, schema=IDS_SCHEMA)


def _history(previous: pl.DataFrame, current: pl.DataFrame, overlaps: pl.DataFrame) -> pl.DataFrame:
    """The events of `match_communities`; `current` has its `id` by now."""
    pairs = overlaps.select(
        "level",
        "new_level",
        "new_size",
        "shared",
        "jaccard",
        pl.col("id").alias("other_id"),
        pl.col("size").alias("old_size"),
        "key",
    ).join(current.select("key", "id"), on="key")
    none = pl.lit(None)
    size = pl.col("entity_ids").list.len()
    born = current.join(previous, on="id", how="anti").select(
        pl.lit("born").alias("event"),
        "level",
        pl.col("id").alias("community_id"),
        none.alias("other_id"),
        none.alias("jaccard"),
        size.alias("size"),
    )
    died = previous.join(current, on="id", how="anti").select(
        pl.lit("died").alias("event"),
        "level",
        pl.col("id").alias("community_id"),
        none.alias("other_id"),
        none.alias("jaccard"),
        size.alias("size"),
    )
    changed = pairs.filter(
        (pl.col("id") == pl.col("other_id")) & ((pl.col("jaccard") < 1) | (pl.col("level") != pl.col("new_level")))
    )
    same_level = pairs.filter(pl.col("level") == pl.col("new_level"))
    split = same_level.filter(2 * pl.col("shared") > pl.col("new_size")).filter(pl.len().over("other_id") > 1)
    merged = same_level.filter(2 * pl.col("shared") > pl.col("old_size")).filter(pl.len().over("key") > 1)
    of_pairs = [
        rows.select(
            pl.lit(event).alias("event"),
            pl.col("new_level").alias("level"),
            pl.col("id").alias("community_id"),
            pl.when(event != "changed").then("other_id").alias("other_id"),
            "jaccard",
            pl.col("new_size").alias("size"),
        )
        for event, rows in (("changed", changed), ("split", split), ("merged", merged))
    ]
    events = [frame.cast(HISTORY_SCHEMA) for frame in (born, died, *of_pairs)]  # type: ignore[arg-type]
    return pl.concat(events).sort("level", "event", "community_id", "other_id")
