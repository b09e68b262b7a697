"""The statements that answers quote: sentences, headings, list items and table rows, with their surroundings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from graphrag_assets.text.words import TABLE_ROW, sentences, word_count

_GAP = " … "  # between parts of a quotation that do not adjoin in the text
_MAX_BLOCK = 500  # characters of a list, up to which it is quoted around an item
_MAX_WORDS = 120
_TITLE_LEVEL = 7  # of a heading without marks: below those with marks

_ITEM = re.compile(r"(?:[-*+•●]|\d{1,3}[.)]|[a-z]\)|\(\d{1,3}\)|\\\*)\s+(?:\[[ x]\]\s)?")
_ROW = re.compile(TABLE_ROW)
_MARKED = re.compile(r"(#{1,6})\s+")
_RULE = re.compile(r"[\s|:=~*_-]+")
_FENCE = re.compile("`{2,}")
_TITLE_LINE = re.compile(
    r"(?![#|]|[-*+•] )(?:([^\n|]+)\n(?:={3,}|-{3,}|~{3,})[^\S\n]*(?:\n|$)|([^\n]*[^\W\d_]{2}[^\n]*)(?:\n|$))"
)
_FULL_STOP = re.compile(r"[.!?。！？][\"'”’»)\]」』）*_]*$")
_QUESTION = re.compile(r"[?？][\"'”’»)\]」』）*_]*$")

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
        is_sentence = self.kind == "sentence" and word_count(self.text) > 2 and not self.is_question
        return is_sentence or self.kind in ("heading", "row", "item")

    @property
    def is_question(self) -> bool:
        """Whether a question mark ends it."""
        return _QUESTION.search(self.text) is not None


def statements(text: str, passage: int, first: int) -> list[Statement]:
    """Return the statements of a passage in their order; `first` is the place of the first one."""
    parts: list[Statement] = []
    headings: list[tuple[int, int]] = []  # level and place
    before: int | None = None
    lead: int | None = None
    header: int | None = None
    block, ended = first, True
    for place, (start, end, kind, level, ends_paragraph) in enumerate(_parts(text), first):
        headings = [(other, at) for other, at in headings if kind != "heading" or other < level]
        before = before if kind == "sentence" else None
        header = header if kind == "row" else None
        if not parts or parts[-1].kind not in (kind, "header") or kind == "heading" or (kind == "sentence" and ended):
            block = place
        path, introduction = tuple(at for _, at in headings), {"row": header, "item": lead}.get(kind)
        parts.append(Statement(passage, kind, text[start:end], start, end, path, before, introduction, block))
        if kind == "heading":
            headings.append((level, place))
        before = place if kind == "sentence" else before
        header = place if kind == "header" else header
        lead = place if kind in ("heading", "sentence") else lead
        ended = ends_paragraph
    return parts


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
        else:
            yield start, end, "sentence", 0, ends_paragraph


@dataclass(frozen=True, slots=True)
class Quotation:
    """The literal text of some statements, and their places; `place` is the one that it was chosen for."""

    text: str
    place: int
    places: tuple[int, ...]


def quotation(candidates: Sequence[Statement], place: int) -> Quotation:
    """Return the statement at `place` of all statements, alone if it is a sentence.

    A row has the header of its table, an item that is no sentence what introduces it and the items around it, and a
    heading, or what ends with a colon, has the sentence or list that follows.
    """
    one = candidates[place]
    first = last = place
    if (one.kind == "heading" or one.text.rstrip("*_").endswith(":")) and place + 1 < len(candidates):
        following = candidates[place + 1]
        last += following.passage == one.passage and following.kind in ("sentence", "item")
    block = candidates[last].block
    in_list = candidates[last].kind == "item" and not _FULL_STOP.search(candidates[block].text)
    while in_list and last + 1 < len(candidates) and candidates[last + 1].block == block:
        if candidates[last + 1].end - one.start > _MAX_BLOCK:
            break
        last += 1
    while in_list and first > block and candidates[last].end - candidates[first - 1].start <= _MAX_BLOCK:
        first -= 1
    introduction = [one.lead] if one.lead is not None and (in_list or one.kind == "row") else []
    places = (*introduction, *range(first, last + 1))
    parts = [_FENCE.sub("", candidates[at].text).strip("| \n") for at in places]  # a fence would open a block of code
    for number, (before, after) in enumerate(pairwise(places), 1):
        adjoin = after == before + 1 and candidates[before].kind not in ("heading", "header")
        space = " " if candidates[after].start > candidates[before].end else ""
        parts[number] = (space if adjoin else _GAP) + parts[number]
    words = "".join(parts).split()
    text = " ".join(words[:_MAX_WORDS]) + (_GAP.rstrip() if len(words) > _MAX_WORDS else "")
    return Quotation(text[mark.end() :] if (mark := _ITEM.match(text)) else text, place, places)
