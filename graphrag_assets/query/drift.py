"""DRIFT search: from the reports nearest to the question to follow-up questions, each a local search.

After "Introducing DRIFT Search" (Whiting et al., Microsoft Research 2024). Here follow-ups are ranked by score,
near-duplicates are asked once, and a budget limits the calls.
"""

import time
from dataclasses import dataclass, field, replace

from graphrag_assets.errors import QueryError
from graphrag_assets.models.answering import Answerer, Mapped, Point, Usage
from graphrag_assets.models.offline import embeddings
from graphrag_assets.query.context import Context, Section, fill
from graphrag_assets.query.local import REPORTS, LocalOptions, local_context
from graphrag_assets.query.options import check_whole
from graphrag_assets.query.results import Action
from graphrag_assets.query.retrieval import Question, search
from graphrag_assets.query.rows import report_rows
from graphrag_assets.store.published import Reader

_SAME_QUESTION = 0.95  # cosine from which two follow-ups are one
_MIN_SCORE = 1.0


@dataclass(frozen=True, slots=True)
class DriftOptions:
    """How far a DRIFT search goes.

    The primer reads the `primer_reports` nearest reports in `primer_folds` calls. Then, `depth` times, the
    `breadth` best follow-up questions are answered by local searches, `max_calls` calls at most in all. No call
    reads more than `max_context_tokens`, whatever `local` allows.
    """

    primer_reports: int = 20
    primer_folds: int = 5
    depth: int = 2
    breadth: int = 4
    max_calls: int = 16
    max_context_tokens: int = 12_000
    local: LocalOptions = field(default_factory=LocalOptions)

    def __post_init__(self) -> None:
        check_whole(self, "primer_reports", "depth", "breadth")
        check_whole(self, "primer_folds", "max_calls", "max_context_tokens", least=1)
        if not isinstance(self.local, LocalOptions):
            raise QueryError(f"The search option local is {self.local!r}; it must be LocalOptions(…).")


_DEFAULTS = DriftOptions()


@dataclass(frozen=True)
class Drift:
    """What a DRIFT search gathered: its steps, the points they made, and the sections they read."""

    actions: list[Action]
    points: list[Point]
    sections: tuple[Section, ...]
    usage: dict[str, Usage]


def primer_context(reader: Reader, question: Question, options: DriftOptions = _DEFAULTS) -> Context:
    """The reports nearest to the question, dealt out into folds: one section Reports per fold."""
    started = time.perf_counter()
    nearest = search(reader, "community_report", question, options.primer_reports)
    reports = report_rows(reader, nearest)
    folds = [reports.gather_every(options.primer_folds, offset) for offset in range(options.primer_folds)]
    sections = tuple(fill(REPORTS, fold, options.max_context_tokens) for fold in folds if fold.height)
    return Context("drift", question.text, sections, time.perf_counter() - started)


def explore(reader: Reader, question: Question, answerer: Answerer, options: DriftOptions = _DEFAULTS) -> Drift:
    """The primer, then rounds of follow-up questions, best first, within depth, breadth and the call budget."""
    primer = primer_context(reader, question, options)
    usage = {"build_context": Usage(seconds=primer.seconds), "primer": Usage(), "action": Usage()}
    sections = list(primer.sections)
    steps: list[_Step] = []
    for section in primer.sections[: options.max_calls]:
        mapped = answerer.map(question.text, section.evidence, options.breadth)
        usage["primer"] += mapped.usage
        steps.append(_Step(question.text, 0, None, mapped))
    asked: list[str] = []
    limit = min(options.local.max_context_tokens, options.max_context_tokens)
    local_options = replace(options.local, max_context_tokens=limit)
    for depth in range(1, options.depth + 1):
        room = min(options.breadth, options.max_calls - len(steps))
        raised = _raised(steps, depth - 1)
        if depth == 1:
            # The question itself is asked first: what no report tells may stand in the text all the same.
            raised.insert(0, (question.text, None))
        for follow_up, parent in _distinct(raised, asked, room):
            asked.append(follow_up)
            context = local_context(reader, Question(follow_up), local_options)
            mapped = answerer.map(follow_up, context.evidence, options.breadth)
            usage["build_context"] += Usage(seconds=context.seconds)
            usage["action"] += mapped.usage
            sections += context.sections
            steps.append(_Step(follow_up, depth, parent, mapped))
    points = sorted((p for step in steps for p in step.mapped.points), key=lambda p: (-p.score, p.text))
    return Drift([step.action for step in steps], points, tuple(sections), usage)


@dataclass(frozen=True, slots=True)
class _Step:
    question: str
    depth: int
    parent: int | None
    mapped: Mapped

    @property
    def action(self) -> Action:
        points = self.mapped.points
        return Action(
            self.question,
            " ".join(point.text for point in points),
            max((point.score for point in points), default=0.0),
            self.depth,
            self.parent,
            tuple(follow_up.question for follow_up in self.mapped.follow_ups),
        )


def _raised(steps: list[_Step], depth: int) -> list[tuple[str, int | None]]:
    """The follow-up questions of the steps at `depth`, most promising first, with the places of their steps."""
    raised = [
        (follow_up, place)
        for place, step in enumerate(steps)
        if step.depth == depth
        for follow_up in step.mapped.follow_ups
        if follow_up.score >= _MIN_SCORE
    ]
    raised.sort(key=lambda pair: (-pair[0].score, pair[0].question))
    return [(follow_up.question, place) for follow_up, place in raised]


def _distinct(raised: list[tuple[str, int | None]], asked: list[str], room: int) -> list[tuple[str, int | None]]:
    """The first `room` questions that are not nearly the same as one asked before or as each other."""
    vectors = embeddings.embed([*asked, *(question for question, _ in raised)])
    known = list(range(len(asked)))
    chosen: list[tuple[str, int | None]] = []
    for place, pair in enumerate(raised, len(asked)):
        if len(chosen) < room and (vectors[known] @ vectors[place]).max(initial=0) < _SAME_QUESTION:
            known.append(place)
            chosen.append(pair)
    return chosen
