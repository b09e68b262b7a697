"""Relationships several hops away from the entities of a question: the best paths first.

One semi-join on the sorted edges per hop, not a recursive query, which would read all edges at every step.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_assets.query.fetch import edges_of, relationship_rows
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import scaled, word_scores
from graphrag_assets.store.publication_reader import Reader

MAX_EXPANDED = 200
"""Maximum number of entities that a hop starts from, the best first; bounds the work."""

MAX_STEPS = 2_000
"""Maximum number of steps of a hop that are compared with the question: the heaviest, from the best paths."""

_ALL = 1_000_000_000
_BY_WEIGHT = 0.5  # the other half of a step's score is how well the entity that it reaches matches the question


def paths(
    reader: Reader, question: Question, entities: Sequence[int], hops: int, scope: Scope = EVERYTHING, limit: int = 100
) -> tuple[pl.DataFrame, list[int]]:
    """The relationships on the best paths of up to `hops` steps from `entities`, and the entities these reach.

    The score of a step is the mean of two numbers from 0 to 1: its weight, as a share of the maximum among the
    relationships of the entity it leaves, and the cosine of the question and the entity it reaches; without vectors,
    the entity's BM25 as a share of the maximum. The score of a path is the product of its steps. An entity is reached
    by its best path.

    Returns:
        The frame: the columns of `relationships_around`, hop (1 to `hops`) and score (of the path that ends
        with the relationship), best first, at most `limit` rows. `in_network` is true where both ends are among
        `entities`; `links` is the number of them that the far end is linked with.
        The numbers of the entities reached, without `entities`, best first.
    """
    scores = dict.fromkeys(entities, 1.0)  # of the best path to each entity
    found: list[pl.DataFrame] = []
    leaving = list(scores)
    for hop in range(1, hops + 1):
        if not leaving:
            break
        steps = _steps(reader, question, scores, leaving, scope).with_columns(hop=pl.lit(hop, pl.Int64))
        found.append(steps)
        new = (
            steps.filter(~pl.col("neighbor").is_in(list(scores)))
            .group_by("neighbor")
            .agg(pl.col("score").max())
            .sort(pl.col("score").round(9).neg(), "neighbor")
        )
        scores.update(new.iter_rows())
        leaving = new["neighbor"].head(MAX_EXPANDED).to_list()
    steps = pl.concat(found) if found else _NO_STEPS
    selected = list(entities)
    inside = pl.col("entity").is_in(selected) & pl.col("neighbor").is_in(selected)
    linked = steps.filter(pl.col("entity").is_in(selected)).group_by("neighbor").agg(links=pl.col("entity").n_unique())
    best = (
        # A relationship is found from both ends: the shortest path counts, then the best one.
        steps.sort("hop", pl.col("score").round(9).neg(), "human_readable_id", "entity")
        .unique("human_readable_id", keep="first", maintain_order=True)
        .sort(pl.col("score").round(9).neg(), "hop", "human_readable_id")
        .head(limit)
        .join(linked, on="neighbor", how="left", maintain_order="left")
        .with_columns(in_network=inside, links=pl.when(inside).then(0).otherwise(pl.col("links").fill_null(0)))
    )
    chosen = best.select(
        "human_readable_id", "in_network", pl.col("links").cast(pl.Int64), "combined_degree", "hop", "score"
    )
    reached = sorted(set(best["neighbor"]) - set(selected), key=lambda number: (-round(scores[number], 9), number))
    return relationship_rows(reader, chosen, scope), reached


_NO_STEPS = pl.DataFrame(
    schema={
        **dict.fromkeys(("entity", "neighbor", "human_readable_id"), pl.Int64),
        **{"combined_degree": pl.Int64, "score": pl.Float64, "hop": pl.Int64},
    }
)


def _steps(
    reader: Reader, question: Question, scores: Mapping[int, float], leaving: list[int], scope: Scope
) -> pl.DataFrame:
    """The relationships of the entities with the score of the path that ends with each."""
    edges = edges_of(reader, leaving, scope)
    greatest = pl.col("weight").max().over("entity")
    edges = edges.with_columns(
        part=pl.when(greatest > 0).then(pl.col("weight") / greatest).otherwise(0.0),
        so_far=pl.col("entity").replace_strict(scores, return_dtype=pl.Float64),
    )
    by_weight = (pl.col("so_far") * pl.col("part")).round(9)
    edges = edges.sort(by_weight.neg(), "human_readable_id", "entity").head(MAX_STEPS)
    near = _similarities(reader, question, edges["neighbor"].unique().sort().to_list(), scope)
    similar = pl.col("neighbor").replace_strict(near, default=0.0, return_dtype=pl.Float64)
    return edges.select(
        "entity",
        "neighbor",
        "human_readable_id",
        "combined_degree",
        score=pl.col("so_far") * (_BY_WEIGHT * pl.col("part") + (1 - _BY_WEIGHT) * similar),
    )


def _similarities(reader: Reader, question: Question, entities: list[int], scope: Scope) -> dict[int, float]:
    """How well each entity matches the question, 0 to 1; without entities whose texts are outside the scope."""
    if reader.embedding is None:
        return scaled(word_scores(reader, "entity", question, _ALL, scope))
    model, dimensions = reader.embedding
    vector = np.asarray(question.vector(model))
    found = reader.rows(
        f"""
        SELECT number, greatest(array_inner_product(vector, $vector::FLOAT[{dimensions}]), 0) AS similarity
        FROM embeddings WHERE kind = 'entity' AND number IN (SELECT unnest($entities::INT[]))
          AND {scope.allows("entity_text", "number")}
        """,
        {"vector": vector, "entities": entities},
    )
    return dict(found.iter_rows())
