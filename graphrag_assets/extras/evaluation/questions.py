"""Questions with gold passages: read from questions.jsonl, and found in a publication."""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphrag_assets.errors import InputError
from graphrag_assets.ids import stable_id
from graphrag_assets.store.publication_reader import Reader

FILE = "questions.jsonl"
_EXAMPLE = '{"question": "Who commanded it?", "document": "ship.txt", "quote": "Captain Anderson commanded"}'


class Gold(NamedTuple):
    """A passage that answers a question: a document by title, source path, file name or id, and its part.

    The part is `quote`, or the characters `start` to `end`; without either it is the whole document.
    """

    document: str
    quote: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Question:
    """A question. `kind`: user, cloze or bridge; `is_answerable`: whether the documents answer it."""

    id: str
    text: str
    gold: tuple[Gold, ...]
    answer: str | None = None
    kind: str = "user"
    is_answerable: bool = True


class Problem(NamedTuple):
    """What is wrong with a line of a file, and what to do. The other lines are used."""

    file: str
    line: int
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.what}. {self.remedy}"


@dataclass(frozen=True)
class Questions:
    """Questions, and the problems of lines that are not used. `lines`: the line of each question by its id."""

    questions: list[Question]
    problems: list[Problem] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)


class _Passage(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    document: str = Field(min_length=1)
    quote: str | None = Field(None, min_length=1)
    start: int | None = Field(None, ge=0)
    end: int | None = Field(None, ge=1)


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    question: str = Field(min_length=1, pattern=r"\S")
    gold: list[_Passage] = []
    document: str | None = Field(None, min_length=1)
    quote: str | None = Field(None, min_length=1)
    answer: str | None = None
    answerable: bool = True
    id: str | None = Field(None, min_length=1)


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
    found = Questions([])
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            question = _question(_Line.model_validate(json.loads(line.decode("utf-8-sig"))))
        except ValidationError as error:
            found.problems.append(Problem(path.name, number, *_in_words(error)))
        except ValueError as error:  # of JSON or UTF-8
            found.problems.append(Problem(path.name, number, f"it is not JSON: {error}", f"Write {_EXAMPLE}"))
        else:
            if not question.gold and question.is_answerable:
                remedy = 'Name the document that answers it, and a quote; or "answerable": false if none does'
                found.problems.append(Problem(path.name, number, "the question has no gold passage", f"{remedy}."))
            elif question.id in found.lines:
                what = f"the question stands in line {found.lines[question.id]}, too"
                found.problems.append(Problem(path.name, number, what, "Remove one of them."))
            else:
                found.questions.append(question)
                found.lines[question.id] = number
    if not found.questions:
        first = f" {found.problems[0]}" if found.problems else f" Write lines such as {_EXAMPLE}"
        raise InputError(f"{path} has no question that can be used.{first}")
    return found


def _question(line: _Line) -> Question:
    given = [
        *line.gold,
        *([_Passage(document=line.document, quote=line.quote, start=None, end=None)] if line.document else []),
    ]
    gold = tuple(Gold(one.document, one.quote, one.start, one.end) for one in given)
    return Question(
        line.id or stable_id(line.question, gold), line.question, gold, line.answer, "user", line.answerable
    )


def _in_words(error: ValidationError) -> tuple[str, str]:
    """What is wrong, and the remedy, of the first error."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "the line"
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(str(first["loc"][-1]), [*_Line.model_fields, *_Passage.model_fields], 1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Names are {', '.join(_Line.model_fields)}."
        return f"{place!r} is not a name of this format", hint
    return f"{place}: {first['msg']}", f"Write {_EXAMPLE}"


@dataclass(frozen=True)
class Placed:
    """A question, and for each of its gold passages the numbers of the text units that hold at least half of it."""

    question: Question
    units: tuple[frozenset[int], ...]

    @property
    def all_units(self) -> frozenset[int]:
        """The text units of all gold passages."""
        return frozenset().union(*self.units)


class Unplaced(NamedTuple):
    """A question whose gold passages are not all in the publication, and why."""

    question: Question
    reason: str


def place(reader: Reader, questions: Iterable[Question]) -> tuple[list[Placed], list[Unplaced]]:
    """Find the gold passages of questions in a publication; unanswerable questions have none."""
    asked = list(questions)
    documents = _Documents(reader, {gold.document for question in asked for gold in question.gold})
    placed: list[Placed] = []
    unplaced: list[Unplaced] = []
    for question in asked:
        try:
            placed.append(Placed(question, tuple(documents.units_of(gold) for gold in question.gold)))
        except LookupError as error:
            unplaced.append(Unplaced(question, str(error.args[0])))
    return placed, unplaced


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
        ids = sorted({document for found in self._named.values() for document, _ in found})
        self._units: dict[str, list[tuple[int, int | None, int | None, str]]] = {}
        for document, *unit in reader.frame(_UNITS, {"documents": ids}).iter_rows():
            self._units.setdefault(document, []).append(tuple(unit))

    def units_of(self, gold: Gold) -> frozenset[int]:
        """The text units that hold a passage. Raises LookupError with the reason and the remedy."""
        named = self._named.get(gold.document)
        if not named:
            raise LookupError(
                f"there is no document {gold.document!r} in the publication. Give its title, file name or path"
            )
        for document, text in named:
            if (span := _span(gold, text)) is None:
                continue
            found = frozenset(
                number
                for number, start, end, unit in self._units.get(document, ())
                if (_contains(unit, gold.quote) if start is None or end is None else _holds((start, end), span))
            )
            if found:
                return found
        what = f"does not have the quote “{_short(gold.quote)}”" if gold.quote else "has no text unit there"
        raise LookupError(f"{gold.document} {what}. Copy the passage from the document's text")


def _span(gold: Gold, text: str) -> tuple[int, int] | None:
    """The characters of a passage in its document's text."""
    if gold.quote is None:
        return gold.start or 0, min(gold.end or len(text), len(text))
    start = text.find(gold.quote)
    if start >= 0:
        return start, start + len(gold.quote)
    match = _pattern(gold.quote).search(text)
    return match.span() if match else None


def _pattern(quote: str) -> re.Pattern[str]:
    """The quote with any white space between its words, in capitals or small letters."""
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
