"""What each search method, and BM25 beside them, find of the gold passages; and how sure a difference is."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from statistics import fmean
from typing import NamedTuple, cast

import numpy as np

from graphrag_assets.extras.evaluation.questions import Placed
from graphrag_assets.query import GraphRAG, MethodName

CUTOFFS = (2, 5, 10)
METRICS = (*(f"recall@{k}" for k in CUTOFFS), "MRR")


def ranks(ranking: Sequence[int], gold: Sequence[AbstractSet[int]]) -> list[int | None]:
    """For each gold passage the rank, from 1, of the first text unit that holds it; None if no one does."""
    return [next((rank for rank, unit in enumerate(ranking, 1) if unit in units), None) for units in gold]


def recall(gold_ranks: Sequence[int | None]) -> dict[str, float]:
    """recall@2, @5 and @10: the share of the passages among the first. MRR: 1 / rank of the first passage."""
    reached = [rank for rank in gold_ranks if rank is not None]
    metrics = {f"recall@{k}": sum(rank <= k for rank in reached) / len(gold_ranks) for k in CUTOFFS}
    return metrics | {"MRR": 1 / min(reached) if reached else 0.0}


RESAMPLES = 10_000


class Difference(NamedTuple):
    """The mean of paired differences, its 95 % interval, and p: how likely it is not below 0, by resampling."""

    mean: float
    low: float
    high: float
    p_worse: float

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


def paired(before: Sequence[float], after: Sequence[float], seed: int = 0) -> Difference:
    """Return the difference of two measurements of the same questions, in the same order."""
    differences = np.array(after, float) - np.array(before, float)
    if not differences.any():
        return Difference(0.0, 0.0, 0.0, 1.0)
    draws = np.random.default_rng(seed).integers(len(differences), size=(RESAMPLES, len(differences)))
    means = differences[draws].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(fmean(differences.tolist()), float(low), float(high), float((means >= 0).mean()))


BM25 = "BM25"
METHODS: tuple[MethodName, ...] = ("local", "basic")
"""What is measured unless methods are named: they ask no model but that of the vectors."""


class Score(NamedTuple):
    """One number from 0 to 1: of a question by a method."""

    question: str
    method: str
    metric: str
    value: float


def measure(rag: GraphRAG, placed: Iterable[Placed], methods: Sequence[str]) -> Iterator[Score]:
    """Yield the scores of answerable questions by each method; BM25 counts as one.

    Raises:
        QueryError: questions cannot be embedded as the index was.
    """
    for question, units in placed:
        for method in methods if units else ():
            for metric, value in recall(ranks(ranking(rag, method, question.question), units)).items():
                yield Score(question.question, method, metric, value)


def ranking(rag: GraphRAG, method: str, question: str) -> list[int]:
    """Return the text units that a method finds, best first: those that stand in its context."""
    if method == BM25:
        return list(rag.retrieve(question, k=CUTOFFS[-1], method="words")["human_readable_id"])
    sources = rag.context(cast("MethodName", method), question).frames.get("sources")
    return [] if sources is None else list(sources.filter("in_context")["human_readable_id"])
