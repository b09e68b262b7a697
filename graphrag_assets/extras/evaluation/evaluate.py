"""Evaluates a publication: what search methods and BM25 find of the gold passages, and which answers are right."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from graphrag_assets.extras.evaluation.answers import REFUSED, RIGHT, judge_of, measure_answers
from graphrag_assets.extras.evaluation.questions import Questions, place
from graphrag_assets.extras.evaluation.retrieval import BM25, METHODS, METRICS, Difference, Score, measure, paired
from graphrag_assets.query import GraphRAG, MethodName
from graphrag_assets.runtime.outgoing import listed

MAIN = "recall@5"
MAX_LOSS, MAX_P = 0.02, 0.05
_LOST_SHOWN = 10


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


class Change(NamedTuple):
    """recall@5 of a method in two publications, by the questions that both have, and those that lost passages."""

    method: str
    before: float
    after: float
    p_worse: float
    lost: list[str]

    @property
    def is_worse(self) -> bool:
        """Whether the loss is more than chance: more than two points, with p < 0.05 by the paired bootstrap."""
        return self.after - self.before < -MAX_LOSS and self.p_worse < MAX_P

    def __str__(self) -> str:
        lost = listed([f"“{one}”" for one in self.lost], _LOST_SHOWN, " ")
        return (
            f"recall@5 by {self.method} {100 * self.before:.1f} → {100 * self.after:.1f} (p {self.p_worse:.4f}; "
            f"{len(self.lost)} questions lost: {lost})."
        )


def changes_between(before: Evaluation, after: Evaluation) -> list[Change]:
    """Return the change of each method from one publication to a later one."""
    changes = []
    for method in after.methods:
        old, new = before.values(method), after.values(method)
        if common := [question for question in new if question in old]:
            pair = [old[one] for one in common], [new[one] for one in common]
            lost = [one for one in common if new[one] < old[one]]
            changes.append(Change(method, fmean(pair[0]), fmean(pair[1]), paired(*pair).p_worse, lost))
    return changes
