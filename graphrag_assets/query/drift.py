"""DRIFT search: from the reports nearest to the question to follow-up questions, each a local search.

After "Introducing DRIFT Search" (Whiting et al., Microsoft Research 2024). Here follow-ups are ranked by score,
near-duplicates are asked once, and a budget limits the calls. What is done without a model is here.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from graphrag_assets.answering import Mapped, Point
from graphrag_assets.embedded import hashed_embeddings
from graphrag_assets.errors import QueryError
from graphrag_assets.query.context import Context, fill
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.local import REPORTS, LocalOptions
from graphrag_assets.query.options import check_flags, check_whole
from graphrag_assets.query.results import Action
from graphrag_assets.query.retrieval import Question, search
from graphrag_assets.query.rows import report_rows
from graphrag_assets.store.publication_reader import Reader

_SAME_QUESTION = 0.95  # cosine from which two follow-ups are one
_MIN_SCORE = 1.0
_CALLS_WITH_HYPOTHESIS = 4  # with fewer calls, each is better spent on reading


@dataclass(frozen=True, slots=True)
class DriftOptions:
    """How far a DRIFT search goes.

    Args:
        primer_reports: so many reports, the nearest ones, are read first, in `primer_folds` calls.
        hypothetical_answer: the reports are searched by an answer that a model makes up, which resembles them more
            than the question does; `seed` chooses the report whose style it takes.
        depth, breadth: so many times, the so many best follow-up questions are answered by local searches.
        max_calls: most calls in all, that for the answer included.
        max_context_tokens: most that a call reads, whatever `local` allows.
        max_reduce_tokens: of the points that the answer is put together from, the best first.
        max_reduce_words: what a model is told about the length of the answer.
        local: options of the local searches.
    """

    primer_reports: int = 20
    primer_folds: int = 5
    hypothetical_answer: bool = True
    depth: int = 2
    breadth: int = 4
    max_calls: int = 16
    max_context_tokens: int = 12_000
    max_reduce_tokens: int = 12_000
    max_reduce_words: int = 1000
    seed: int = 86
    local: LocalOptions = field(default_factory=LocalOptions)

    def __post_init__(self) -> None:
        check_whole(self, "primer_reports", "depth", "breadth")
        check_whole(self, "primer_folds", "max_context_tokens", "max_reduce_tokens", "max_reduce_words", least=1)
        check_whole(self, "max_calls", least=2)  # one to read, one to answer
        check_whole(self, "seed", least=None)
        check_flags(self, "hypothetical_answer")
        if not isinstance(self.local, LocalOptions):
            raise QueryError(f"The search option local is {self.local!r}; it must be LocalOptions(…).")

    @property
    def makes_hypothesis(self) -> bool:
        """Whether a call goes to a hypothetical answer."""
        return self.hypothetical_answer and self.max_calls >= _CALLS_WITH_HYPOTHESIS

    @property
    def most_steps(self) -> int:
        """Calls for the primer and the follow-up questions."""
        return self.max_calls - 1 - self.makes_hypothesis

    @property
    def folds(self) -> int:
        """Calls for the primer: half of the steps at most, if follow-up questions are to be asked."""
        return min(self.primer_folds, max(self.most_steps // 2, 1) if self.depth and self.breadth else self.most_steps)

    @property
    def of_steps(self) -> LocalOptions:
        """The options of the local searches, within the limit of this search."""
        limit = min(self.local.max_context_tokens, self.max_context_tokens)
        return replace(self.local, max_context_tokens=limit)


_DEFAULTS = DriftOptions()


def primer_context(
    reader: Reader, question: Question, options: DriftOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> Context:
    """The reports nearest to the question, dealt out into folds: one section Reports per fold."""
    started = time.perf_counter()
    nearest = search(reader, "community_report", question, options.primer_reports, scope)
    reports = report_rows(reader, nearest)
    folds = [reports.gather_every(options.folds, offset) for offset in range(options.folds)]
    sections = tuple(fill(REPORTS, fold, options.max_context_tokens) for fold in folds if fold.height)
    return Context("drift", question.text, sections, time.perf_counter() - started)


def example_report(
    reader: Reader, question: Question, options: DriftOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> str:
    """The report whose style a hypothetical answer takes, drawn by the seed from the nearest; empty without any."""
    nearest = search(reader, "community_report", question, options.primer_reports, scope)
    if not nearest:
        return ""
    drawn = random.Random(options.seed).choice(nearest)
    return str(report_rows(reader, [drawn])["full_content"].item() or "")


@dataclass(frozen=True, slots=True)
class Step:
    """A question asked, what came of it, and the place of the step that raised it."""

    question: str
    depth: int
    parent: int | None
    mapped: Mapped | None
    error: str | None = None

    @property
    def points(self) -> tuple[Point, ...]:
        return self.mapped.points if self.mapped else ()

    @property
    def action(self) -> Action:
        """The step as the result shows it."""
        return Action(
            self.question,
            " ".join(point.text for point in self.points),
            max((point.score for point in self.points), default=0.0),
            self.depth,
            self.parent,
            tuple(follow_up.question for follow_up in self.mapped.follow_ups) if self.mapped else (),
            self.error,
        )


Raised = tuple[str, int | None]
"""A question to be asked, and the place of the step that raised it."""


def next_questions(question: str, steps: Sequence[Step], depth: int, options: DriftOptions) -> list[Raised]:
    """What to ask at `depth`: the best follow-ups of the steps above it, none nearly the same as another.

    At depth 1 the question itself comes first: what no report tells may stand in the text all the same.
    """
    raised = [
        (follow_up, place)
        for place, step in enumerate(steps)
        if step.depth == depth - 1 and step.mapped
        for follow_up in step.mapped.follow_ups
        if follow_up.score >= _MIN_SCORE
    ]
    raised.sort(key=lambda pair: (-pair[0].score, pair[0].question, pair[1]))
    ranked: list[Raised] = [(question, None)] if depth == 1 else []
    ranked += [(follow_up.question, place) for follow_up, place in raised]
    asked = [step.question for step in steps if step.depth]
    return _distinct(ranked, asked, min(options.breadth, options.most_steps - len(steps)))


def _distinct(raised: Sequence[Raised], asked: Sequence[str], room: int) -> list[Raised]:
    """The first `room` questions that are not nearly the same as one asked before or as each other."""
    vectors = hashed_embeddings.embed([*asked, *(question for question, _ in raised)])
    known = list(range(len(asked)))
    chosen: list[Raised] = []
    for place, pair in enumerate(raised, len(asked)):
        if len(chosen) < room and np.max(vectors[known] @ vectors[place], initial=0) < _SAME_QUESTION:
            known.append(place)
            chosen.append(pair)
    return chosen
