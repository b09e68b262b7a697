"""Evaluates a publication: retrieval by each method beside its baselines, answers, and the health of the index."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from graphrag_assets import __version__
from graphrag_assets.errors import InputError
from graphrag_assets.extras.evaluation.answers import answer_scores
from graphrag_assets.extras.evaluation.bootstrap import Difference, mean, paired
from graphrag_assets.extras.evaluation.evaluators.health import health
from graphrag_assets.extras.evaluation.generated import generated_questions
from graphrag_assets.extras.evaluation.questions import (
    FILE,
    Placed,
    Problem,
    Question,
    Questions,
    Unplaced,
    load_questions,
    place,
)
from graphrag_assets.extras.evaluation.results import record_scores, results
from graphrag_assets.extras.evaluation.retrieval import BASELINES, METHODS, RERANKED, Score, measure
from graphrag_assets.query import GraphRAG, MethodName
from graphrag_assets.query.results import Answer
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_files import publication_file
from graphrag_assets.store.publications import resolve

RETRIEVAL = ("recall@2", "recall@5", "recall@10", "all@5", "mrr")
ANSWERS = (
    *("has the answer", "answered", "refused", "citation precision", "citation recall", "names", "numbers", "dates"),
)
HEALTH = "index"


@dataclass(frozen=True)
class Options:
    """What is evaluated.

    `generated`: questions in all that generated ones fill up to. `answers`: how many questions are answered, too.
    """

    methods: Sequence[MethodName] = METHODS
    generated: int = 200
    answers: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Evaluation:
    """What was measured of a publication.

    Attributes:
        publication: its number.
        questions: by id, those whose gold passages are in it, and unanswerable ones.
        unplaced: the others, with the reasons.
        problems: lines of the file that are not used.
        scores: one per question, method and metric; of the index itself the question is empty.
        answered: the questions that were answered.
        answers: by method, in their order.
    """

    publication: int
    questions: dict[str, Question]
    unplaced: list[Unplaced]
    problems: list[Problem]
    scores: list[Score]
    answered: list[Question] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=dict)

    @cached_property
    def by_metric(self) -> dict[tuple[str, str], dict[str, float]]:
        """By method and metric the value of each question."""
        found: dict[tuple[str, str], dict[str, float]] = {}
        for question, method, metric, value in self.scores:
            found.setdefault((method, metric), {})[question] = value
        return found

    @property
    def methods(self) -> list[str]:
        """Baselines and methods with scores of retrieval, in the order of measurement."""
        return list(dict.fromkeys(score.method for score in self.scores if score.metric == "recall@5"))

    def mean(self, method: str, metric: str) -> float | None:
        """The mean over the questions that have a value; None without any."""
        values = self.by_metric.get((method, metric))
        return mean(list(values.values())) if values else None

    def tokens_per_passage(self, method: str) -> float | None:
        """Tokens of all contexts divided by the gold passages in them; None if there are none."""
        tokens, passages = (sum(self.by_metric.get((method, m), {}).values()) for m in ("tokens", "passages"))
        return tokens / passages if passages else None

    def against(self, method: str, baseline: str = "BM25", metric: str = "recall@5") -> Difference:
        """How a method differs from a baseline on the same questions."""
        before, after = self.by_metric[baseline, metric], self.by_metric[method, metric]
        common = [question for question in after if question in before]
        return paired([before[one] for one in common], [after[one] for one in common])


def questions_of(settings: Settings, path: Path | None, rag: GraphRAG, options: Options) -> Questions:
    """The questions of a file, by default `<data>/questions.jsonl` where it is, filled up with generated ones."""
    own = path or settings.data / FILE
    loaded = load_questions(own) if path or own.is_file() else Questions([])
    n_generated = options.generated - len(loaded.questions)
    more = generated_questions(rag.index.reader(), n_generated, options.seed) if n_generated > 0 else []
    if not loaded.questions and not more:
        raise InputError(f"There is no question: {own} does not exist, and the publication has no facts to ask about.")
    return Questions([*loaded.questions, *more], loaded.problems, loaded.lines)


def evaluate(rag: GraphRAG, asked: Questions, options: Options) -> Evaluation:
    """Evaluate the publication that `rag` reads.

    Retrieval needs no model but that of the vectors; where a reranking model is set, local search is measured with it,
    too, and `options.answers` questions are answered as any question is.
    """
    reader = rag.index.reader()
    placed, unplaced = place(reader, asked.questions)
    methods = [*options.methods, *([f"local{RERANKED}"] if rag.tools.reranker and "local" in options.methods else [])]
    scores = measure(reader, placed, rag.tools.settings, methods, rag.context, BASELINES, rag.tools.embedder)
    answered = _to_answer(placed, options.answers)
    answers: dict[str, list[Answer]] = {
        method: [rag.search(method, one.text) for one in answered] for method in options.methods
    }
    for method, given in answers.items():
        for question, answer in zip(answered, given, strict=True):
            scores += answer_scores(question, method, answer)
    scores += [Score("", HEALTH, metric, value) for metric, value in health(reader).items()]
    kept = {each.question.id: each.question for each in placed}
    return Evaluation(reader.publication, kept, unplaced, asked.problems, scores, answered, answers)


def _to_answer(placed: Sequence[Placed], count: int) -> list[Question]:
    """The questions that are answered: unanswerable ones, then those of users, then generated ones."""
    order = sorted(placed, key=lambda each: (each.question.is_answerable, each.question.kind != "user"))
    return [each.question for each in order[:count]]


def record(settings: Settings, evaluation: Evaluation) -> None:
    """Keep the scores in `evaluation.duckdb`, in place of earlier ones of the publication."""
    with results(settings.index_folder) as connection:
        record_scores(connection, evaluation.publication, "evaluate", __version__, evaluation.scores)


class Change(NamedTuple):
    """A metric of a method in two publications, with the questions lost and won."""

    method: str
    metric: str
    before: float
    after: float
    difference: Difference
    lost: list[Question]
    won: list[Question]


def compare_publications(
    settings: Settings, names: tuple[str, str], asked: Questions, options: Options
) -> list[Change]:
    """Measure two kept publications on the questions that both have.

    Raises:
        StoreError: one of them is not kept.
    """
    folder = settings.index_folder
    evaluations = []
    for name in names:
        with GraphRAG(publication_file(folder, resolve(folder, name))) as rag:
            evaluations.append(evaluate(rag, asked, options))
    return changes(*evaluations)


def changes(before: Evaluation, after: Evaluation) -> list[Change]:
    """What differs between two evaluations, over the questions that both have."""
    found = []
    for (method, metric), values in after.by_metric.items():
        old = before.by_metric.get((method, metric), {})
        common = [question for question in values if question in old]
        if metric not in (*RETRIEVAL, *ANSWERS) or not common:
            continue
        pair = [old[one] for one in common], [values[one] for one in common]
        lost, won = (
            [after.questions[one] for one in common if sign * (values[one] - old[one]) > 0] for sign in (-1, 1)
        )
        found.append(Change(method, metric, mean(pair[0]), mean(pair[1]), paired(*pair), lost, won))
    return found
