"""Relationships several hops away from the entities of a question: the best paths first.

One semi-join on the sorted edges per hop, not a recursive query, which would read all edges at every step.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from graphrag_assets.query.fetch import edges_of, relationship_rows
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader

MAX_EXPANDED = 200
"""Maximum number of entities that a hop starts from, the best first; bounds the work."""


def paths(
    reader: Reader,
    similarities: Mapping[int, float],
    entities: Sequence[int],
    hops: int,
    scope: Scope = EVERYTHING,
    limit: int = 100,
) -> tuple[pl.DataFrame, list[int]]:
    """Return the relationships on the best paths of up to `hops` steps from `entities`, and the entities these reach.

    The score of a step is the mean of two numbers from 0 to 1: its weight, as a share of the maximum among the
    relationships of the entity it leaves, and the similarity of the question and the entity it reaches. The score of a
    path is the product of its steps. An entity is reached by its best path.

    Returns:
        The frame: the columns of `relationship_rows`, hop (1 to `hops`) and score (of the path that ends with the
        relationship), best first, at most `limit` rows. The numbers of the entities reached, best first.
    """
    scores = dict.fromkeys(entities, 1.0)  # of the best path to each entity
    hop_steps = list[pl.DataFrame]()
    leaving = list(scores)
    share = pl.col("weight") / pl.max_horizontal(pl.col("weight").max().over("entity"), 1e-9)
    best_first = [pl.col("score").round(9).neg(), pl.col("hop"), pl.col("human_readable_id"), pl.col("entity")]
    for hop in range(1, hops + 1):
        steps = edges_of(reader, leaving, scope).with_columns(
            hop=pl.lit(hop, pl.Int64),
            score=pl.col("entity").replace_strict(scores, default=None, return_dtype=pl.Float64)
            * (share + pl.col("neighbor").replace_strict(similarities, default=0.0, return_dtype=pl.Float64))
            / 2,
        )
        hop_steps.append(steps)
        reached = steps.filter(~pl.col("neighbor").is_in(list(scores))).group_by("neighbor").agg(pl.col("score").max())
        reached = reached.sort(pl.col("score").round(9).neg(), "neighbor")
        scores.update(reached.iter_rows())
        leaving = reached["neighbor"].head(MAX_EXPANDED).to_list()
    # A relationship is found from both ends: the shortest path counts, then the best one.
    steps = pl.concat(hop_steps).sort("hop", *best_first).unique("human_readable_id", keep="first", maintain_order=True)
    best = steps.sort(best_first).head(limit)
    reached_by_best = set(best["neighbor"]).difference(entities)
    rows = relationship_rows(reader, best.select("human_readable_id", "combined_degree", "hop", "score"), scope)
    return rows, sorted(reached_by_best, key=lambda number: (-round(scores[number], 9), number))
