"""The statements that answers quote: sentences, headings, list items and table rows, with their surroundings."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from graphrag_assets.text.words import TABLE_ROW, sentences, word_count

_GAP = " … "  # between parts of a quotation that do not adjoin in the text
_MAX_PARAGRAPH, _MAX_BLOCK = 250, 500
"""Characters of a paragraph, and of a list or what follows a heading, up to which it is quoted around a statement."""
_MAX_WORDS = 120
_MAX_BEFORE = 2  # sentences quoted before one that is understood by them
_MAX_TITLE_WORDS = 12
_MIN_SHARE = 0.05  # of the question, for which a heading or the sentence before is quoted as well
_TITLE_LEVEL = 7  # of a heading without marks: below those with marks

_ITEM = re.compile(r"(?:[-*+•●]|\d{1,3}[.)]|[a-z]\)|\(\d{1,3}\)|\\\*)\s+(?:\[[ x]\]\s)?")
_ROW = re.compile(TABLE_ROW)
_MARKED = re.compile(r"(#{1,6})\s+")
_RULE = re.compile(r"[\s|:=~*_-]+")
_FENCE = re.compile("`{2,}")
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


def statements(text: str, passage: int, first: int) -> list[Statement]:
    """The statements of a passage in their order; `first` is the place of the first one."""
    found: list[Statement] = []
    headings: list[tuple[int, int]] = []  # level and place
    before: int | None = None
    lead: int | None = None
    header: int | None = None
    block, ended = first, True
    for place, (start, end, kind, level, ends_paragraph) in enumerate(_parts(text), first):
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


def _parts(text: str) -> Iterator[tuple[int, int, Kind, int, bool]]:
    """Start, end, kind, level if a heading, and whether a paragraph ends there."""
    spans = [(s.start, len(text[: s.end].rstrip()), s.ends_paragraph) for s in sentences(text)]
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
        elif _ROW.match(body):
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
    found: Sequence[Statement],
    place: int,
    by_heading: np.ndarray,
    by_sentence: np.ndarray,
    alone: bool = False,
    earlier: Set[int] = frozenset(),
) -> Quotation:
    """The statement at `place` with what it is understood by.

    That is the rest of a short paragraph or list, what follows a heading, the header of a row, and the sentences before
    it or the heading above it if it has some of the question only by them.

    Args:
        found: all statements.
        place: of the statement.
        by_heading: for each statement, the share of the question that it has only by its headings.
        by_sentence: the same by the sentences before it.
        alone: it needs nothing else of its paragraph.
        earlier: places that the answer shows already; they are left out.
    """
    one = found[place]
    is_heading = one.kind == "heading"
    onward = is_heading or one.text.rstrip("*_").endswith(":")
    blocks = {one.block, *(following.block for following in found[place + 1 : place + 2] if onward)}
    most = 0 if alone or one.kind == "row" else _MAX_BLOCK if onward or one.kind == "item" else _MAX_PARAGRAPH
    first = last = place
    while by_sentence[first] > _MIN_SHARE and place - first < _MAX_BEFORE and found[first].before is not None:
        first -= 1
    while last + 1 < len(found) and (following := found[last + 1]).passage == one.passage:
        fits = following.end - found[first].start <= most or (onward and last == place)
        if not fits or following.kind == "heading" or not (is_heading or following.block in blocks):
            break
        last += 1
    while first > one.block and found[last].end - found[first - 1].start <= most:
        first -= 1
    introduction = one.headings[-1:] if by_heading[place] > _MIN_SHARE else ()
    introduction = introduction if one.lead is None else (one.lead,)
    shown = [at for at in dict.fromkeys((*introduction, *range(first, last + 1))) if at not in earlier]
    parts = [_FENCE.sub("", found[at].text).strip("| \n") for at in shown]  # a fence would open a block of code
    for number, (before, after) in enumerate(pairwise(shown), 1):
        adjoin = after == before + 1 and found[before].kind not in ("heading", "header")
        space = " " if found[after].start > found[before].end else ""
        parts[number] = (space if adjoin else _GAP) + parts[number]
    words = "".join(parts).split()
    text = " ".join(words[:_MAX_WORDS]) + (_GAP.rstrip() if len(words) > _MAX_WORDS else "")
    return Quotation(text[mark.end() :] if (mark := _ITEM.match(text)) else text, place, tuple(shown))
