"""The statements that answers quote: sentences, headings, list items and table rows, with their surroundings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from graphrag_assets.text import sentences, word_count

_GAP = " … "  # between parts of a quotation that do not adjoin in the text
_MAX_PARAGRAPH, _MAX_BLOCK = 250, 500
"""Characters of a paragraph, and of a list or what follows a heading, up to which it is quoted around a statement."""
_MAX_WORDS = 120
_MAX_BEFORE = 2  # sentences quoted before one that is understood by them
_MAX_TITLE_WORDS = 12
_MIN_SHARE = 0.05  # of the question, for which a heading or the sentence before is quoted as well
_TITLE_LEVEL = 7  # of a heading without marks: below those with marks

_ITEM = re.compile(r"(?:[-*+•●]|\d{1,3}[.)]|[a-z]\)|\(\d{1,3}\)|\\\*)\s+(?:\[[ x]\]\s)?")
_MARKED = re.compile(r"(#{1,6})\s+")
_RULE = re.compile(r"[\s|:=~*_-]+")
_TITLE_LINE = re.compile(
    r"(?![#|]|[-*+•] )(?:([^\n|]+)\n(?:={3,}|-{3,}|~{3,})[^\S\n]*(?:\n|$)|([^\n]*[^\W\d_]{2}[^\n]*)(?:\n|$))"
)
_SENTENCE_END = re.compile(r"[.!?:;,…。！？][\"'”’)\]」』）*_]*$")

Kind = Literal["heading", "header", "row", "item", "sentence"]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a passage: `text` is `passage_text[start:end]`, without marks of headings.

    `headings` are the headings above it, the nearest last; `before` the sentence in front of it in its section; `lead`
    what introduces it: the header of a table, the sentence or heading before a list. All are places in the list of
    statements. Statements of one paragraph, list or table have the same `block`.
    """

    passage: int
    kind: Kind
    text: str
    start: int
    end: int
    headings: tuple[int, ...]
    before: int | None
    lead: int | None
    block: int

    @property
    def is_quotable(self) -> bool:
        """Whether it says something by itself."""
        return self.kind in ("heading", "row", "item") or (self.kind == "sentence" and word_count(self.text) > 2)


def statements(text: str, language: str, passage: int, first: int) -> list[Statement]:
    """The statements of a passage in their order; `first` is the place of the first one."""
    found: list[Statement] = []
    headings: list[tuple[int, int]] = []  # level and place
    before: int | None = None
    lead: int | None = None
    header: int | None = None
    block, ended = first, True
    for place, (start, end, kind, level, ends_paragraph) in enumerate(_parts(text, language), first):
        headings = [(other, at) for other, at in headings if kind != "heading" or other < level]
        before = before if kind == "sentence" else None
        header = header if kind == "row" else None
        if not found or found[-1].kind not in (kind, "header") or kind == "heading" or (kind == "sentence" and ended):
            block = place
        path, introduction = tuple(at for _, at in headings), {"row": header, "item": lead}.get(kind)
        found.append(Statement(passage, kind, text[start:end], start, end, path, before, introduction, block))
        if kind == "heading":
            headings.append((level, place))
        before = place if kind == "sentence" else before
        header = place if kind == "header" else header
        lead = place if kind in ("heading", "sentence") else lead
        ended = ends_paragraph
    return found


def _parts(text: str, language: str) -> Iterator[tuple[int, int, Kind, int, bool]]:
    """Start, end, kind, level if a heading, and whether a paragraph ends there."""
    spans = [(s.start, len(text[: s.end].rstrip()), s.ends_paragraph) for s in sentences(text, language)]
    for number, (start, end, ends_paragraph) in enumerate(spans):
        while (title := _TITLE_LINE.match(text, start, end)) and (title[1] or title[2].isupper()):
            line = 1 if title[1] else 2
            yield title.start(line), title.end(line), "heading", _TITLE_LEVEL, True
            start = title.end()
        start += len(text[start:end]) - len(text[start:end].lstrip())
        body, is_last = text[start:end], number + 1 == len(spans)
        if not body or _RULE.fullmatch(body):
            continue
        if mark := _MARKED.match(body):
            yield start + mark.end(), end, "heading", len(mark[1]), True
        elif body.startswith("|"):
            is_header = not is_last and _RULE.fullmatch(text, spans[number + 1][0], spans[number + 1][1])
            yield start, end, "header" if is_header else "row", 0, ends_paragraph
        elif _ITEM.match(body):
            yield start, end, "item", 0, ends_paragraph
        elif ends_paragraph and not is_last and _is_title(body):
            yield start, end, "heading", _TITLE_LEVEL, True
        else:
            yield start, end, "sentence", 0, ends_paragraph


def _is_title(body: str) -> bool:
    """Whether a paragraph is a title: one short line that no full stop ends."""
    return "\n" not in body and word_count(body) <= _MAX_TITLE_WORDS and not _SENTENCE_END.search(body)


@dataclass(frozen=True, slots=True)
class Quotation:
    """The literal text of some statements, and their places; `place` is the one that it was chosen for."""

    text: str
    place: int
    shown: tuple[int, ...]


def quotation(
    found: Sequence[Statement], place: int, by_heading: np.ndarray, by_sentence: np.ndarray, alone: bool = False
) -> Quotation:
    """A statement as it is quoted, with what it is understood by.

    A row has its header, an item its list or at least what introduces it, a heading what follows, a sentence its
    paragraph if that is short.

    Args:
        found: all statements.
        place: of the statement.
        by_heading: for each statement, the share of the question that it has only by its headings.
        by_sentence: the same by the sentences before it.
        alone: a sentence needs nothing else.
    """
    one = found[place]
    introduction = [] if one.lead is None else [one.lead]
    if one.kind == "row":
        return _quoted(found, place, [*introduction, place])
    if one.kind == "heading":
        return _quoted(found, place, range(place, max(_end(found, place, place, True), _next(found, place)) + 1))
    if one.kind == "item":
        last = _end(found, (introduction or [one.block])[0], one.block)
        is_whole = last >= place and (last + 1 == len(found) or found[last + 1].block != one.block)
        return _quoted(found, place, [*introduction, *(range(one.block, last + 1) if is_whole else [place])])
    if one.kind == "sentence" and alone:
        return _quoted(found, place, [place])
    if one.text.rstrip("*_").endswith(":") and _next(found, place) > place:
        return _quoted(found, place, range(place, _end(found, place, place + 1) + 1))
    first = place
    while by_sentence[first] > _MIN_SHARE and place - first < _MAX_BEFORE and (found[first].before is not None):
        first -= 1
    last = _end(found, first, place, most=_MAX_PARAGRAPH)
    while first > one.block and found[last].end - found[first - 1].start <= _MAX_PARAGRAPH:
        first -= 1
    headings = one.headings[-1:] if by_heading[place] > _MIN_SHARE else ()
    return _quoted(found, place, [*headings, *range(first, last + 1)])


def _next(found: Sequence[Statement], place: int) -> int:
    """The place of the next statement of the section; `place` if there is none."""
    following = found[place + 1] if place + 1 < len(found) else None
    goes_on = following and following.passage == found[place].passage and following.kind != "heading"
    return place + 1 if goes_on else place


def _end(
    found: Sequence[Statement], start: int, place: int, whole_section: bool = False, most: int = _MAX_BLOCK
) -> int:
    """The last statement of the block of `place`, or of its section, up to which there are `most` characters."""
    last = place
    while (following := _next(found, last)) > last and (whole_section or found[following].block == found[place].block):
        if found[following].end - found[start].start > most:
            break
        last = following
    return last


def _quoted(found: Sequence[Statement], place: int, shown: Sequence[int]) -> Quotation:
    parts = [found[at].text.strip("| ") for at in shown]
    for number, (one, other) in enumerate(pairwise(shown), 1):
        adjoin = other == one + 1 and "header" not in (found[one].kind, found[other].kind)
        space = " " if found[other].start > found[one].end else ""
        parts[number] = (space if adjoin else _GAP) + parts[number]
    words = "".join(parts).split()
    text = " ".join(words[:_MAX_WORDS]) + (_GAP.rstrip() if len(words) > _MAX_WORDS else "")
    return Quotation(text[mark.end() :] if (mark := _ITEM.match(text)) else text, place, tuple(shown))
