"""Questions with gold passages: read from questions.jsonl, and found in a publication."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from graphrag_assets.errors import InputError
from graphrag_assets.store.publication_reader import Reader

_EXAMPLE = '{"question": "Who commanded it?", "document": "ship.txt", "quote": "Captain Anderson commanded"}'


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Gold(_Strict):
    """A passage that answers a question: a quote of a document, or, without one, the whole document.

    The document is named by its title, source path, file name or id.
    """

    document: str = Field(min_length=1)
    quote: str | None = Field(None, min_length=1)


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


_BY_NAME = """
SELECT id, text FROM documents WHERE $name IN (id, title, source, regexp_extract(source, '[^/]*$'))
ORDER BY ($name = id) DESC, ($name = source) DESC, id
"""
_UNITS = """
SELECT human_readable_id, start_char, end_char, text FROM text_units WHERE document_id = $document ORDER BY ordinal
"""


def place(reader: Reader, questions: Iterable[Question]) -> tuple[list[Placed], list[str]]:
    """Find the gold passages of questions in a publication; unanswerable questions have none.

    Returns:
        The questions whose passages are all there, and in words why others are not.
    """
    placed: list[Placed] = []
    problems: list[str] = []
    for question in questions:
        try:
            placed.append(Placed(question, [_units_of(reader, gold) for gold in question.gold]))
        except LookupError as error:
            problems.append(f"“{question.question}”: {error.args[0]}.")
    return placed, problems


def _units_of(reader: Reader, gold: Gold) -> frozenset[int]:
    """Return the text units that hold a passage. Raises LookupError with the reason and the remedy."""
    documents = reader.query(_BY_NAME, {"name": gold.document})
    if documents.is_empty():
        raise LookupError(
            f"there is no document {gold.document!r} in the publication. Give its title, file name or path"
        )
    quote = gold.quote or ""
    # With any white space between its words, in capitals or small letters.
    similar = re.compile(r"\s+".join(map(re.escape, quote.split())), re.IGNORECASE)
    for document, text in documents.iter_rows():
        match = re.search(re.escape(quote), text) or similar.search(text)
        span = match.span() if match and quote else (0, 0 if quote else len(text))
        holding = frozenset(
            number
            for number, start, end, unit in reader.query(_UNITS, {"document": document}).iter_rows()
            if (similar.search(unit) if start is None or end is None else _holds((start, end), span))
        )
        if holding:
            return holding
    what = f"does not have the quote “{shorten(quote, 60, placeholder='…')}”" if quote else "has no text unit there"
    raise LookupError(f"{gold.document} {what}. Copy the passage from the document's text")


def _holds(unit: tuple[int, int], span: tuple[int, int]) -> bool:
    """Whether a unit has at least half of a span, or lies within it."""
    common = min(unit[1], span[1]) - max(unit[0], span[0])
    return common > 0 and (2 * common >= span[1] - span[0] or common == unit[1] - unit[0])
