"""Pruning: entities and relationships that are named too rarely, or connected too weakly, are left out of the graph.

The facts stay: another limit makes another graph of them, without a model. Like GraphRAG's `prune_graph`, but the most
connected entity (often what a corpus is about) and all components are kept.
"""

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl


@dataclass(frozen=True, slots=True)
class PruningOptions:
    """What stays in the graph; the defaults keep everything.

    Attributes:
        min_frequency: minimum text units of an entity.
        min_degree: minimum relationships of an entity, of those between entities of the minimum frequency.
        min_weight_percentile: relationships with a weight below this percentile (0 to 100) of weights are left out.
    """

    min_frequency: int = 1
    min_degree: int = 0
    min_weight_percentile: float = 0.0


class Kept(NamedTuple):
    """Keys of the entities (title_key) and pairs of relationships (low, high) that stay, and how many do not."""

    entities: pl.DataFrame
    pairs: pl.DataFrame
    n_pruned_entities: int
    n_pruned_relationships: int


def prune(frequencies: pl.DataFrame, pairs: pl.DataFrame, options: PruningOptions) -> Kept:
    """What stays: filtered once by frequency, then by degree, then relationships by weight, in GraphRAG's order.

    Args:
        frequencies: title_key, frequency (text units), a row per entity.
        pairs: low, high (title keys), weight, a row per relationship.
    """
    entities = frequencies.filter(pl.col("frequency") >= options.min_frequency).select("title_key")
    kept = _between(pairs, entities)
    if options.min_degree:
        ends = pl.concat([kept["low"], kept["high"]]).rename("title_key").value_counts(name="degree")
        entities = entities.join(ends, on="title_key", how="left").filter(
            pl.col("degree").fill_null(0) >= options.min_degree
        )
        kept = _between(kept, entities)
    if options.min_weight_percentile:
        limit = pl.col("weight").quantile(options.min_weight_percentile / 100, "linear")
        kept = kept.filter(pl.col("weight") >= limit)
    return Kept(
        entities.select("title_key"),
        kept.select("low", "high"),
        frequencies.height - entities.height,
        pairs.height - kept.height,
    )


def _between(pairs: pl.DataFrame, entities: pl.DataFrame) -> pl.DataFrame:
    for end in ("low", "high"):
        pairs = pairs.join(entities, left_on=end, right_on="title_key", how="semi")
    return pairs
