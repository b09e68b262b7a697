"""Evaluates a publication: what search methods and BM25 find of the gold passages, and which answers are right."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from graphrag_assets.extras.evaluation.answers import REFUSED, RIGHT, judge_of, measure_answers
from graphrag_assets.extras.evaluation.questions import Questions, place
from graphrag_assets.extras.evaluation.retrieval import BM25, METHODS, METRICS, Difference, Score, measure, paired
from graphrag_assets.query import GraphRAG, MethodName

MAIN = "recall@5"


@dataclass(frozen=True)
class Evaluation:
    """What was measured of a publication.

    Attributes:
        publication: its number.
        problems: in words, the lines of the file and the questions that could not be used.
    """

    publication: int
    problems: list[str]
    scores: list[Score]

    @cached_property
    def by_metric(self) -> dict[tuple[str, str], dict[str, float]]:
        """By method and metric the value of each question."""
        values: dict[tuple[str, str], dict[str, float]] = {}
        for question, method, metric, value in self.scores:
            values.setdefault((method, metric), {})[question] = value
        return values

    @property
    def methods(self) -> list[str]:
        """The methods in the order of measurement."""
        return list(dict.fromkeys(score.method for score in self.scores))

    @property
    def metrics(self) -> list[str]:
        """The metrics that were measured."""
        measured = {score.metric for score in self.scores}
        return [metric for metric in (*METRICS, RIGHT, REFUSED) if metric in measured]

    def values(self, method: str, metric: str = MAIN) -> dict[str, float]:
        """Return the value of each question that has one."""
        return self.by_metric.get((method, metric), {})

    def mean(self, method: str, metric: str = MAIN) -> float | None:
        """Return the mean over the questions that have a value; None without any."""
        values = self.values(method, metric)
        return fmean(values.values()) if values else None

    def beyond_bm25(self, method: str) -> Difference:
        """How recall@5 of a method differs from that of BM25."""
        return paired(list(self.values(BM25).values()), list(self.values(method).values()))


def evaluate(
    rag: GraphRAG, questions: Questions, methods: Sequence[MethodName] = METHODS, with_answers: bool = False
) -> Evaluation:
    """Evaluate the publication that `rag` reads.

    Retrieval needs no model but that of the vectors. `with_answers`: the questions are answered, too, as any question
    is, and a chat model that answers also judges.
    """
    reader = rag.index.reader()
    placed, unplaced = place(reader, questions.questions)
    scores = list(measure(rag, placed, (BM25, *methods)))
    if with_answers:
        scores += measure_answers(rag, [each.question for each in placed], methods, judge_of(rag.models.settings))
    return Evaluation(reader.publication, [*questions.problems, *unplaced], scores)
