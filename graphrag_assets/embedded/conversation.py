"""Report ratings, question suggestions and follow-up questions without a model."""

from collections.abc import Sequence
from itertools import zip_longest

from graphrag_assets.contracts.answering import Passage
from graphrag_assets.embedded.questions import Asked, language_of_question, names_in

_QUESTIONS = {
    "Relationships": "What connects {}?",
    "Entities": "Who or what is {}?",
    "Claims": "What is said of {}, and when was it?",
    "Reports": "What is reported on {}?",
}


def in_conversation(question: str, history: str) -> str:
    """The question; if it names nothing, with the subject of the earlier turns."""
    if not history:
        return question
    asked = Asked.of(question)
    if asked.named or asked.subject:
        return question
    for line in reversed(history.splitlines()):
        speaker, _, said = line.partition(": ")
        if speaker == "user" and (found := names_in(said)):
            return asked.with_regard_to(found[-1])
    return question


def rate(question: str, report: str) -> float:
    """The relevance of the report, 0 to 5: a question about everything may be answered by any report."""
    asked = Asked.of(question, language_of_question(question, report))
    if not asked.terms:
        return 3.0
    return round(5 * asked.share_in(report), 2)


def suggest(history: Sequence[str], passages: Sequence[Passage], count: int) -> tuple[str, ...]:
    """Up to `count` new questions about the rows of the evidence: of each table in turn, its best row first."""
    by_table: dict[str, list[str]] = {table: [] for table in _QUESTIONS}
    for passage in passages:
        if passage.table in by_table and passage.title:
            about = passage.title
            about = about.replace(" – ", " and ", 1) if passage.table == "Relationships" else about
            by_table[passage.table].append(_QUESTIONS[passage.table].format(about))
    in_turn = [question for row in zip_longest(*by_table.values()) for question in row if question]
    known = {question.casefold().strip() for question in history}
    return tuple(dict.fromkeys(q for q in in_turn if q.casefold() not in known))[:count]
