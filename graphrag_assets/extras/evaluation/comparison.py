"""Compares a publication with the one before it by recall on the user's questions.

A method is worse if its mean recall@5 over the questions that both publications have has fallen by more than two points
and the paired bootstrap gives p < 0.05.
"""

from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from graphrag_assets.extras.evaluation.evaluate import evaluate
from graphrag_assets.extras.evaluation.questions import load_questions
from graphrag_assets.extras.evaluation.retrieval import paired
from graphrag_assets.query import GraphRAG
from graphrag_assets.runtime.outgoing import listed
from graphrag_assets.settings import Settings

MAX_LOSS = 0.02
MAX_P = 0.05
_LOST_SHOWN = 10


class Change(NamedTuple):
    """recall@5 of a method in two publications, and the questions of which fewer passages are found."""

    method: str
    before: float
    after: float
    p_worse: float
    lost: list[str]

    @property
    def is_worse(self) -> bool:
        """Whether the loss is more than chance."""
        return self.after - self.before < -MAX_LOSS and self.p_worse < MAX_P

    def __str__(self) -> str:
        lost = listed([f"“{one}”" for one in self.lost], _LOST_SHOWN, " ")
        return (
            f"recall@5 by {self.method} {100 * self.before:.1f} → {100 * self.after:.1f} (p {self.p_worse:.4f}; "
            f"{len(self.lost)} questions lost: {lost})."
        )


class Comparison(NamedTuple):
    """The changes by method, the number of questions that both publications have, and why others are not used."""

    changes: list[Change]
    n_questions: int
    problems: list[str]


def compare(settings: Settings, before: Path, after: Path) -> Comparison:
    """Compare two published files by the questions in the data folder; no model is asked but that of the vectors."""
    questions = load_questions(settings.questions_file)
    with GraphRAG(before, settings=settings) as old, GraphRAG(after, settings=settings) as new:
        first, second = evaluate(old, questions), evaluate(new, questions)
    changes, common = [], list[str]()
    for method in second.methods:
        old_values, new_values = first.values(method), second.values(method)
        common = [question for question in new_values if question in old_values]
        if common:
            pair = [old_values[one] for one in common], [new_values[one] for one in common]
            lost = [one for one in common if new_values[one] < old_values[one]]
            changes.append(Change(method, fmean(pair[0]), fmean(pair[1]), paired(*pair).p_worse, lost))
    return Comparison(changes, len(common), second.problems)
