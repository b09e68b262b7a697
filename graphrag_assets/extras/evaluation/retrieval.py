"""What each search method, and BM25 beside them, find of the gold passages."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from graphrag_assets.extras.evaluation.questions import Placed
from graphrag_assets.extras.evaluation.recall import CUTOFFS, ranks, recall
from graphrag_assets.query import GraphRAG, MethodName

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
    """The scores of answerable questions by each method; BM25 counts as one.

    Raises:
        QueryError: questions cannot be embedded as the index was.
    """
    for question, units in placed:
        for method in methods if units else ():
            for metric, value in recall(ranks(ranking(rag, method, question.question), units)).items():
                yield Score(question.question, method, metric, value)


def ranking(rag: GraphRAG, method: str, question: str) -> list[int]:
    """The text units that a method finds, best first: those that stand in its context."""
    if method == BM25:
        return list(rag.retrieve(question, k=CUTOFFS[-1], method="words")["human_readable_id"])
    sources = rag.context(cast("MethodName", method), question).frames.get("sources")
    return [] if sources is None else list(sources.filter("in_context")["human_readable_id"])
