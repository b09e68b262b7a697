"""The result of all searches, and its forms: text, Markdown, plain data."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby

import polars as pl

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.query.citations import Citation, CitedRow
from graphrag_assets.query.context import numbers_in_context
from graphrag_assets.query.options import Failure
from graphrag_assets.runtime.outgoing import as_markdown, safe_markdown


@dataclass(frozen=True, slots=True)
class Action:
    """A step of a DRIFT search: a question and its answer.

    `parent`: the index in `Answer.actions` of the step that raised the question; None for steps that follow from the
    original question. `error`: why the step has no answer, if a call failed.
    """

    question: str
    answer: str
    score: float
    depth: int
    parent: int | None
    follow_ups: tuple[str, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """The choice of `ask`: the kind of question, the method and its options, the reason, and who chose."""

    kind: str
    method: str
    options: Mapping[str, object]
    reason: str
    chosen_by: str

    def __str__(self) -> str:
        """One line: "local search (hops=2): …"."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.method} search{f' ({options})' if options else ''}: {self.reason} (by {self.chosen_by})"


@dataclass(frozen=True, repr=False)
class Answer:
    """The answer to a question, with its evidence.

    A notebook shows it as Markdown. Answers are equal if their texts and citations are, whatever they took.

    Attributes:
        answer: the text. An invalid reference is marked in it: `[unresolved: Entities (77)]`.
        citations: the passages that it cites, in their documents.
        unresolved: invalid references, including those in the notes that the answer was written from.
        context: a frame per section (reports, entities, relationships, claims, sources) with the flags
            `in_context` (the row was given to the answerer) and `cited`.
        usage: by category: build_context, response, map, reduce, hypothesis, primer, action, rating, rewrite, test,
            plan, step, choice. The seconds of concurrent calls are added up.
        seconds: from question to answer.
        actions: DRIFT's graph of steps.
        errors: calls that failed while others succeeded; their results are missing.
        choice: for `ask`, the method it chose, and why.
        tests: the relevance tests of a lazy search in their order: order, human_readable_id and id of the text unit,
            community that led to it (null: the ranking, or a neighbor), relevant (null: the test failed), sentences
            (the relevant ones, from 1).
        steps: the steps of a planned search: step, variable, question (with its values), values, found (null: it was
            skipped), citations (number of cited rows), problem.
    """

    method: str
    question: str
    answer: str
    citations: list[Citation]
    unresolved: list[str]
    context: dict[str, pl.DataFrame] = field(compare=False)
    usage: dict[str, Usage] = field(compare=False)
    seconds: float = field(compare=False)
    model: str
    publication: int
    actions: list[Action] = field(default_factory=list)
    errors: list[Failure] = field(default_factory=list)
    choice: MethodChoice | None = None
    tests: pl.DataFrame | None = field(default=None, compare=False)
    steps: pl.DataFrame | None = field(default=None, compare=False)

    @property
    def total_usage(self) -> Usage:
        """The sum over all categories."""
        return sum(self.usage.values(), Usage())

    def __repr__(self) -> str:
        """Return the beginning of the question and of the answer, and what it rests on."""
        return (
            f"<Answer by {self.method} search to {_one_line(self.question, 60)!r}: {_one_line(self.answer, 80)!r}, "
            f"{len(self.citations)} citations, {self.seconds:.2f} s>"
        )

    def __str__(self) -> str:
        """Return the answer, then its citations with their documents and characters."""
        lines = [self.answer]
        if self.citations:
            lines += ["", "Citations", *(f"  {line}" for line, _ in _grouped(self.citations))]
        if self.unresolved:
            lines += ["", f"Invalid references: {', '.join(self.unresolved)}"]
        lines += ["", *(f"Missing: {failure.what}: {failure.error}" for failure in self.errors)] if self.errors else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return answer with its citations, usage and steps as plain data for JSON; the context as numbers of rows."""
        numbers = numbers_in_context(self.context)
        frames = {"tests": self.tests, "steps": self.steps}
        rows = {name: None if frame is None else frame.to_dicts() for name, frame in frames.items()}
        return asdict(replace(self, context={}, tests=None, steps=None)) | {"context": numbers} | rows

    def _repr_markdown_(self) -> str:
        """How a notebook shows the answer."""
        return answer_to_markdown(self)


def answer_to_json(answer: Answer) -> str:
    """`Answer.to_dict` as JSON."""
    return json.dumps(answer.to_dict(), ensure_ascii=False, indent=2)


def answer_to_markdown(answer: Answer, with_answer: bool = True) -> str:
    """Return the answer as Markdown: question, answer, citations with their quotes, and the model."""
    parts = [f"## {as_markdown(answer.question)}", safe_markdown(answer.answer)] if with_answer else []
    if answer.citations:
        quotes = [
            f"{as_markdown(line)}\n  > {as_markdown(_one_line(group[0].quote))}"
            for line, group in _grouped(answer.citations)
        ]
        parts.append("### Citations\n\n" + "\n".join(f"- {quote}" for quote in quotes))
    if answer.unresolved:
        parts.append(f"Invalid references: {as_markdown(', '.join(answer.unresolved))}")
    parts += [as_markdown(f"Missing: {failure.what}: {failure.error}") for failure in answer.errors]
    if answer.choice:
        parts.append(as_markdown(f"Chosen: {answer.choice}"))
    parts.append(f"*{answer.method} search in {answer.seconds:.2f} s, answered by {answer.model}*")
    return "\n\n".join(parts) + "\n"


def _grouped(citations: list[Citation]) -> list[tuple[str, list[Citation]]]:
    """Return the citations grouped by their cited rows, each group with a line that names the rows and the passages."""
    groups: dict[tuple[CitedRow, ...], list[Citation]] = {}
    for citation in citations:
        groups.setdefault(citation.rows, []).append(citation)
    return [(f"{_rows_in_words(rows)}: {_places(cited)}", cited) for rows, cited in groups.items()]


def _rows_in_words(rows: Iterable[CitedRow]) -> str:
    """Rows as an answer cites them: "Relationships (4, 5); Entities (2)"."""
    numbers: dict[str, list[str]] = {}
    for row in rows:
        numbers.setdefault(row.table, []).append(str(row.number))
    return "; ".join(f"{table} ({', '.join(of_table)})" for table, of_table in numbers.items())


def _places(group: list[Citation]) -> str:
    places = []
    for (title, source, place), passages in groupby(group, key=lambda c: (c.document, c.source, c.place)):
        spans = ", ".join(f"{c.start_char}-{c.end_char}" for c in passages if c.start_char is not None)
        where = ", ".join(part for part in (title, source, place) if part)
        places.append(f"{where}, characters {spans}" if spans else "no text unit")
    return "; ".join(places)


def _one_line(text: str | None, limit: int = 300) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
