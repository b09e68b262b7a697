"""The sentences that answers are chosen from, each with where it stands and what it can be cited by."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_assets.models.answering import Passage
from graphrag_assets.text import sentences

REFERENCE = re.compile(r"\s*\[Data:[^\]]*\]")  # as answers and reports cite
_MARKER = re.compile(r"^(?:[-*+] |\d+[.)] |> |\|)")
_OPENING = re.compile(r"^\d+ entit(?:y|ies) around ")  # how extractive reports begin: it counts, and says nothing
_ORDER = ("Sources", "Claims", "Relationships", "Entities", "Reports")
_LEAST_WORDS, _MOST_WORDS = 4, 120
_MOST_NUMBERS = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of the evidence.

    `rank` and `order` are the places of its passage and of itself, from 0; `before` the place of the sentence in
    front of it, in the same passage; `heading` what its passage is about; `cited` the sentence with its reference.
    """

    text: str
    rank: int
    order: int
    before: int | None
    heading: str
    cited: str


def candidates(passages: Sequence[Passage]) -> list[Candidate]:
    """The sentences of the passages, each once: one that several passages share is cited by all of them.

    Sentences of text units come first: a document says more about a statement than what was made of it.
    """
    ordered = sorted(passages, key=lambda p: _ORDER.index(p.table) if p.table in _ORDER else len(_ORDER))
    found: list[tuple[str, int, int | None, str]] = []
    cited_by: dict[str, dict[str, list[int]]] = {}
    place_of: dict[str, int] = {}
    for rank, passage in enumerate(ordered):
        before, heading = None, passage.title
        for text, is_heading in _statements(passage.text):
            if is_heading:
                heading, before = f"{passage.title} {text}", None
                continue
            numbers = cited_by.setdefault(text, {}).setdefault(passage.table, [])
            if passage.number not in numbers:
                numbers.append(passage.number)
            if text not in place_of:
                place_of[text] = len(found)
                found.append((text, rank, before, heading))
            before = place_of[text]
    return [
        Candidate(text, rank, order, before, heading, f"{text} {_reference(cited_by[text])}")
        for order, (text, rank, before, heading) in enumerate(found)
    ]


def _statements(text: str) -> list[tuple[str, bool]]:
    """The sentences of `text` without white space at their ends, references and list marks; and whether a heading."""
    text = REFERENCE.sub("", text)
    found = []
    for start, end, _ in sentences(text):
        line = " ".join(text[start:end].split())
        if line.startswith("#"):
            found.append((line.lstrip("# "), True))
            continue
        line = _MARKER.sub("", line).strip()
        if _LEAST_WORDS <= line.count(" ") + 1 <= _MOST_WORDS and not _OPENING.match(line):
            found.append((line, False))
    return found


def _reference(cited: dict[str, list[int]]) -> str:
    parts = []
    for table, numbers in cited.items():
        more = ", +more" if len(numbers) > _MOST_NUMBERS else ""
        parts.append(f"{table} ({', '.join(map(str, numbers[:_MOST_NUMBERS]))}{more})")
    return f"[Data: {'; '.join(parts)}]"
