"""Matches the communities of two runs, so that a community keeps its id.

A community's key is a hash of its entities, so it changes with every added entity. Its id must survive such
changes: reports, numbers and citations depend on it. Communities are therefore compared by their entities, and
one that overlaps its predecessor well enough inherits the id.
"""

from itertools import count

import polars as pl

from graphrag_assets.ids import stable_id


def match_communities(previous: pl.DataFrame, current: pl.DataFrame, threshold: float = 0.5) -> pl.DataFrame:
    """Return `key, id` of the current communities; ids are inherited from the previous ones where they match.

    `previous` has `id, level, entity_ids`; `current` has `key, level, entity_ids`.

    A pair can match when its Jaccard index (shared entities / entities of either) is at least `threshold`.
    Pairs are taken best first: by Jaccard, then same level before another, then more shared entities, then id
    and key; each side is taken once. A match may cross levels: a community that moved up a level because its
    siblings left is still itself. A current community without a match gets its key as id, or a hash of the
    key when that id is in use, now or by a predecessor.

    The result is sorted by key and does not depend on the order of rows.
    """
    overlaps = _overlaps(previous, current)
    inherited = _best_pairs(overlaps.filter(pl.col("jaccard") >= threshold))
    return _name(previous["id"], current["key"], inherited)


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
    pairs: dict[str, str] = {}
    inherited: set[str] = set()
    for id_, key in ordered.select("id", "key").iter_rows():
        if key not in pairs and id_ not in inherited:
            pairs[key] = id_
            inherited.add(id_)
    return pairs


def _name(previous_ids: pl.Series, keys: pl.Series, inherited: dict[str, str]) -> pl.DataFrame:
    """`key, id` sorted by key. A new id is the key itself if that is unused: an id is never assigned twice."""
    before, ids = set(previous_ids), dict(inherited)
    used = before.union(keys)
    for key in keys:
        others = (stable_id("community", key, attempt) for attempt in count(1))
        unused = key if key not in before else next(id_ for id_ in others if id_ not in used)
        ids.setdefault(key, unused)
    return pl.DataFrame(sorted(ids.items()), {"key": pl.String, "id": pl.String}, orient="row")
