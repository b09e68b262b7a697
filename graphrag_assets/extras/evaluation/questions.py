"""Questions with gold passages: read from questions.jsonl, and found in a publication."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from graphrag_assets.errors import InputError
from graphrag_assets.store.publication_reader import Reader

_EXAMPLE = '{"question": "Who commanded it?", "document": "ship.txt", "quote": "Captain Anderson commanded"}'


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Gold(_Strict):
    """A passage that answers a question: a document by title, source path, file name or id, and its part.

    The part is `quote`, or the characters `start` to `end`; without either it is the whole document.
    """

    document: str = Field(min_length=1)
    quote: str | None = Field(None, min_length=1)
    start: int | None = Field(None, ge=0)
    end: int | None = Field(None, ge=1)


class Question(_Strict):
    """A question: its gold passages, words that a right answer contains, and whether the documents answer it."""

    question: str = Field(min_length=1, pattern=r"\S")
    gold: list[Gold] = []
    answer: str | None = None
    answerable: bool = True

    @model_validator(mode="before")
    @classmethod
    def _with_single_passage(cls, line: Any) -> Any:
        """Accept `document` and `quote` beside the question in place of a list of passages."""
        if not isinstance(line, dict) or "document" not in line or not isinstance(line.get("gold", []), list):
            return line
        single = {name: line[name] for name in ("document", "quote") if name in line}
        others = {name: value for name, value in line.items() if name not in single}
        return {**others, "gold": [*others.get("gold", []), single]}


class Questions(NamedTuple):
    """Questions, and in words why other lines of the file are not used."""

    questions: list[Question]
    problems: list[str]


def load_questions(path: Path) -> Questions:
    """Read a file with one JSON object a line; lines that cannot be used become problems.

    Raises:
        InputError: the file cannot be read, or no line of it can be used.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}. Write a file with lines such as {_EXAMPLE}"
        ) from None
    questions: dict[str, Question] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            question = Question.model_validate(json.loads(line.decode("utf-8-sig")))
        except ValidationError as error:
            problem = _in_words(error)
        except ValueError as error:  # of JSON or UTF-8
            problem = f"it is not JSON: {error}. Write {_EXAMPLE}"
        else:
            if question.question in questions:
                problem = "an earlier line has the same question. Remove one of them."
            elif question.answerable and not question.gold:
                problem = (
                    "the question has no gold passage. Name the document that answers it, and a quote; or "
                    '"answerable": false if none does.'
                )
            else:
                questions[question.question] = question
                continue
        problems.append(f"{path.name}, line {number}: {problem}")
    if not questions:
        raise InputError(f"{path} has no question that can be used. {(problems or [f'Write {_EXAMPLE}'])[0]}")
    return Questions(list(questions.values()), problems)


def _in_words(error: ValidationError) -> str:
    """Return what is wrong, and the remedy, of the first error."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "the line"
    names = ", ".join([*Question.model_fields, *Gold.model_fields])
    return f"{place}: {first['msg']}. Names are {names}; write {_EXAMPLE}"


class Placed(NamedTuple):
    """A question, and for each of its gold passages the numbers of the text units that hold at least half of it."""

    question: Question
    units: list[frozenset[int]]


def place(reader: Reader, questions: Iterable[Question]) -> tuple[list[Placed], list[str]]:
    """Find the gold passages of questions in a publication; unanswerable questions have none.

    Returns:
        The questions whose passages are all there, and in words why others are not.
    """
    question_list = list(questions)
    documents = _Documents(reader, {gold.document for question in question_list for gold in question.gold})
    placed: list[Placed] = []
    problems: list[str] = []
    for question in question_list:
        try:
            placed.append(Placed(question, [documents.units_of(gold) for gold in question.gold]))
        except LookupError as error:
            problems.append(f"“{question.question}”: {error.args[0]}.")
    return placed, problems


_BY_NAME = """
SELECT n.name, d.id, d.text FROM documents d
JOIN (SELECT unnest($names::VARCHAR[]) AS name) n
  ON n.name IN (d.id, d.title, d.source, regexp_extract(d.source, '[^/]*$'))
ORDER BY n.name, (n.name = d.id) DESC, (n.name = d.source) DESC, d.id
"""
_UNITS = """
SELECT document_id, human_readable_id, start_char, end_char, text FROM text_units
WHERE document_id IN (SELECT unnest($documents::VARCHAR[])) ORDER BY document_id, ordinal
"""


class _Documents:
    """The documents that gold passages name, and their text units."""

    def __init__(self, reader: Reader, names: set[str]) -> None:
        self._named: dict[str, list[tuple[str, str]]] = {}
        for name, document, text in reader.frame(_BY_NAME, {"names": sorted(names)}).iter_rows():
            self._named.setdefault(name, []).append((document, text))
        ids = sorted({document for pairs in self._named.values() for document, _ in pairs})
        self._units: dict[str, list[tuple[int, int | None, int | None, str]]] = {}
        for document, *unit in reader.frame(_UNITS, {"documents": ids}).iter_rows():
            self._units.setdefault(document, []).append(tuple(unit))

    def units_of(self, gold: Gold) -> frozenset[int]:
        """Return the text units that hold a passage. Raises LookupError with the reason and the remedy."""
        named = self._named.get(gold.document)
        if not named:
            raise LookupError(
                f"there is no document {gold.document!r} in the publication. Give its title, file name or path"
            )
        for document, text in named:
            if (span := _span(gold, text)) is None:
                continue
            units = frozenset(
                number
                for number, start, end, unit in self._units.get(document, ())
                if (_contains(unit, gold.quote) if start is None or end is None else _holds((start, end), span))
            )
            if units:
                return units
        what = f"does not have the quote “{_short(gold.quote)}”" if gold.quote else "has no text unit there"
        raise LookupError(f"{gold.document} {what}. Copy the passage from the document's text")


def _span(gold: Gold, text: str) -> tuple[int, int] | None:
    """Return the characters of a passage in its document's text."""
    if gold.quote is None:
        return gold.start or 0, min(gold.end or len(text), len(text))
    match = re.search(re.escape(gold.quote), text) or _pattern(gold.quote).search(text)
    return match.span() if match else None


def _pattern(quote: str) -> re.Pattern[str]:
    """Return the quote with any white space between its words, in capitals or small letters."""
    return re.compile(r"\s+".join(map(re.escape, quote.split())), re.IGNORECASE)


def _contains(text: str, quote: str | None) -> bool:
    return quote is None or _pattern(quote).search(text) is not None


def _holds(unit: Sequence[int], span: tuple[int, int]) -> bool:
    """Whether a unit has at least half of a span, or lies within it."""
    common = min(unit[1], span[1]) - max(unit[0], span[0])
    return common > 0 and (2 * common >= span[1] - span[0] or common == unit[1] - unit[0])


def _short(text: str | None, limit: int = 60) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= limit else f"{line[:limit]}…"
