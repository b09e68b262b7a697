"""The one result type of all searches, and how it is shown."""

from dataclasses import dataclass, field
from itertools import groupby

import polars as pl

from graphrag_assets.models.answering import Usage
from graphrag_assets.query.citations import Citation, CitedRow


@dataclass(frozen=True, slots=True)
class Action:
    """A step of a DRIFT search: the question asked, what it yielded, and the step it followed from.

    `parent` is the place of that step in `Answer.actions`, or None for steps that follow from the question itself.
    """

    question: str
    answer: str
    score: float
    depth: int
    parent: int | None
    follow_ups: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """The answer to a question with all it rests on.

    `context` has a frame per section (reports, entities, relationships, claims, sources) with the flag
    `in_context`. `usage` is by category: build_context, response, map, reduce, primer, action. `unresolved`
    lists references of the answer that lead nowhere. `actions` is DRIFT's graph of steps.
    """

    method: str
    question: str
    answer: str
    citations: list[Citation]
    unresolved: list[str]
    context: dict[str, pl.DataFrame]
    usage: dict[str, Usage]
    seconds: float
    model: str
    publication: int
    actions: list[Action] = field(default_factory=list)

    def __str__(self) -> str:
        """The answer, then its citations: what is cited, where it stands."""
        lines = [self.answer]
        if self.citations:
            lines += ["", "Citations", *(f"  {line}" for line, _ in _grouped(self.citations))]
        if self.unresolved:
            lines += ["", f"References that lead nowhere: {', '.join(self.unresolved)}"]
        return "\n".join(lines)


def answer_to_markdown(answer: Answer) -> str:
    """The answer as Markdown: question, answer, citations with their quotes, and what answered."""
    parts = [f"## {answer.question}", answer.answer]
    if answer.citations:
        quotes = [f"{line}\n  > {_one_line(group[0].quote)}" for line, group in _grouped(answer.citations)]
        parts.append("### Citations\n\n" + "\n".join(f"- {quote}" for quote in quotes))
    if answer.unresolved:
        parts.append(f"References that lead nowhere: {', '.join(answer.unresolved)}")
    parts.append(f"*{answer.method} search in {answer.seconds:.2f} s, answered by {answer.model}*")
    return "\n\n".join(parts) + "\n"


def _grouped(citations: list[Citation]) -> list[tuple[str, list[Citation]]]:
    """A line for the passages that the same rows are cited for, naming the rows; with the citations."""
    groups: dict[tuple[CitedRow, ...], list[Citation]] = {}
    for citation in citations:
        groups.setdefault(citation.rows, []).append(citation)
    return [
        (f"{'; '.join(f'{row.table} ({row.number})' for row in rows)}: {_places(cited)}", cited)
        for rows, cited in groups.items()
    ]


def _places(group: list[Citation]) -> str:
    places = []
    for (title, source), found in groupby(group, key=lambda c: (c.document_title, c.source)):
        spans = ", ".join(f"{c.start_char}-{c.end_char}" for c in found if c.start_char is not None)
        places.append(f"{title}, {source}, characters {spans}" if spans else "no text unit")
    return "; ".join(places)


def _one_line(text: str | None, limit: int = 300) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
