"""The one result type of all searches, and how it is shown."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

import polars as pl

from graphrag_assets.answering import Usage
from graphrag_assets.query.citations import Citation, CitedRow


@dataclass(frozen=True, slots=True)
class Action:
    """A step of a DRIFT search: the question asked, what it yielded, and the step it followed from.

    `parent` is the place of that step in `Answer.actions`, or None for steps that follow from the question itself.
    `error`: why the step has no answer, if a call failed.
    """

    question: str
    answer: str
    score: float
    depth: int
    parent: int | None
    follow_ups: tuple[str, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed while others went on: of which part of the search, what was lost, and why."""

    part: str
    what: str
    error: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """How `ask` answered: the kind of the question, the method and its options, why, and who said so."""

    kind: str
    method: str
    options: Mapping[str, Any]
    reason: str
    chosen_by: str

    def __str__(self) -> str:
        """One line: "local search (hops=2): …"."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.method} search{f' ({options})' if options else ''}: {self.reason} (by {self.chosen_by})"


@dataclass(frozen=True)
class Answer:
    """The answer to a question with all it rests on.

    Attributes:
        answer: the text. A reference that leads nowhere stands in it as `[unresolved: Entities (77)]`.
        citations: what it cites, led back to documents.
        unresolved: references that lead nowhere, also those of notes that the answer was made from.
        context: a frame per section (reports, entities, relationships, claims, sources) with the flags
            `in_context` (was it given to be read?) and `cited`.
        usage: by category: build_context, response, map, reduce, hypothesis, primer, action, rating, choice. Calls
            may run at once: their seconds are added up.
        seconds: from question to answer.
        actions: DRIFT's graph of steps.
        errors: calls that failed while others went on; what they would have told is missing.
        choice: for `ask`, the method it chose, and why.
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
    errors: list[Failure] = field(default_factory=list)
    choice: Chosen | None = None

    @property
    def total_usage(self) -> Usage:
        """The sum over all categories."""
        return sum(self.usage.values(), Usage())

    def __str__(self) -> str:
        """The answer, then its citations: what is cited, where it stands."""
        lines = [self.answer]
        if self.citations:
            lines += ["", "Citations", *(f"  {line}" for line, _ in _grouped(self.citations))]
        if self.unresolved:
            lines += ["", f"References that lead nowhere: {', '.join(self.unresolved)}"]
        lines += ["", *(f"Missing: {failure.what}: {failure.error}" for failure in self.errors)] if self.errors else []
        return "\n".join(lines)


def answer_to_json(answer: Answer) -> str:
    """The answer with its citations, usage and steps as JSON; the context only as the numbers of its rows."""
    plain = {
        "method": answer.method,
        "question": answer.question,
        "answer": answer.answer,
        "citations": [asdict(citation) for citation in answer.citations],
        "unresolved": answer.unresolved,
        "context": {
            name: frame.filter("in_context")["human_readable_id"].to_list() for name, frame in answer.context.items()
        },
        "usage": {category: asdict(usage) for category, usage in answer.usage.items()},
        "seconds": answer.seconds,
        "model": answer.model,
        "publication": answer.publication,
        "actions": [asdict(action) for action in answer.actions],
        "errors": [asdict(failure) for failure in answer.errors],
        "choice": asdict(answer.choice) if answer.choice else None,
    }
    return json.dumps(plain, ensure_ascii=False, indent=2)


def answer_to_markdown(answer: Answer, with_answer: bool = True) -> str:
    """The answer as Markdown: question, answer, citations with their quotes, and what answered."""
    parts = [f"## {answer.question}", answer.answer] if with_answer else []
    if answer.citations:
        quotes = [f"{line}\n  > {_one_line(group[0].quote)}" for line, group in _grouped(answer.citations)]
        parts.append("### Citations\n\n" + "\n".join(f"- {quote}" for quote in quotes))
    if answer.unresolved:
        parts.append(f"References that lead nowhere: {', '.join(answer.unresolved)}")
    parts += [f"Missing: {failure.what}: {failure.error}" for failure in answer.errors]
    if answer.choice:
        parts.append(f"Chosen: {answer.choice}")
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
