"""Scores of answers: citations, names, numbers and dates, refusals."""

from collections.abc import Sequence

from graphrag_assets.extras.evaluation.evaluators.citations import citation_precision, citation_recall
from graphrag_assets.extras.evaluation.evaluators.facts import supported_facts
from graphrag_assets.extras.evaluation.evaluators.refusal import is_refusal
from graphrag_assets.extras.evaluation.questions import Question
from graphrag_assets.extras.evaluation.retrieval import Score
from graphrag_assets.query.citations import Citation
from graphrag_assets.query.results import Answer
from graphrag_assets.query.support import cited_statements


def answer_scores(question: Question, method: str, answer: Answer) -> list[Score]:
    """The scores of an answer. Shares are 0 to 1; what an answer has none of has no score."""
    refused = is_refusal(answer.answer)
    if not question.is_answerable:
        return [Score(question.id, method, "refused", float(refused))]
    found = {"answered": float(not refused)}
    if question.answer:
        found["has the answer"] = float(_plain(question.answer) in _plain(answer.answer))
    if not refused:
        found |= score_answer(answer.answer, answer.citations)
    return [Score(question.id, method, metric, value) for metric, value in found.items()]


def score_answer(text: str, citations: Sequence[Citation]) -> dict[str, float]:
    """citation precision, citation recall, names, numbers and dates of an answer, as shares."""
    quotes: dict[tuple[str, int], list[str]] = {}
    for citation in citations:
        for row in citation.rows:
            quotes.setdefault((row.table, row.number), []).append(citation.quote or "")
    statements = [(said, rows) for said, rows in cited_statements(text) if not said.startswith("#")]
    counts = {
        "citation precision": _count(citation_precision(statements, quotes)),
        "citation recall": _count(citation_recall(statements, quotes)),
    }
    cited = [quote for each in quotes.values() for quote in each]
    for said, _ in statements:
        for kind, (there, of) in supported_facts(said, cited).items():
            before, before_of = counts.get(kind, (0, 0))
            counts[kind] = before + there, before_of + of
    return {metric: there / of for metric, (there, of) in counts.items() if of}


def _count(judged: Sequence[bool]) -> tuple[int, int]:
    return sum(judged), len(judged)


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").replace("’", "'").split()).casefold()
