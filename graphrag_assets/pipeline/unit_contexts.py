"""The context of a text unit: what its document is called, and the headings it stands under.

A passage often says "it" of what only a title or a heading names. The context is searched, embedded and shown with
the text; it is no part of it: quotes and character spans are of the text alone.
"""

import re
from itertools import groupby
from typing import NamedTuple

import polars as pl

SEPARATOR = " › "
_MAX_PART = 200  # characters of a title or heading
_MAX_PATH = 400  # characters of several; the title and the innermost heading always stay

_LINE = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)|(?P<marks>#{1,6})[ \t]+(?P<heading>\S[^\n]*))$", re.MULTILINE
)
_CLOSING_MARKS = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"[*`]|(?<!\w)_+|_+(?!\w)")


class Heading(NamedTuple):
    """A heading of a text: its first character (the first #), its level from 1 to 6, and its words."""

    start: int
    level: int
    title: str


def headings(text: str) -> list[Heading]:
    """The headings of a Markdown text, in order: its lines that begin with # marks, but for those in fenced code.

    Converted documents are Markdown, so the levels of their headings are found too.

    >>> headings("# The cable\\n\\n## *1866* ##\\n")
    [Heading(start=0, level=1, title='The cable'), Heading(start=13, level=2, title='1866')]
    """
    found: list[Heading] = []
    open_fence = ""
    for line in _LINE.finditer(text):
        fence, info = line["fence"], line["info"]
        if open_fence:
            if fence and fence.startswith(open_fence) and not info.strip():
                open_fence = ""
        elif fence:
            if "`" not in fence or "`" not in info:  # otherwise it is code within a line
                open_fence = fence
        elif title := _plain(_CLOSING_MARKS.sub("", line["heading"])):
            found.append(Heading(line.start("marks"), len(line["marks"]), title))
    return found


def _plain(title: str) -> str:
    """The words of a heading on one line, without links and emphasis."""
    return " ".join(_EMPHASIS.sub("", _LINK.sub(r"\1", title)).split())


def heading_path(found: list[Heading], start: int) -> list[str]:
    """The headings in force at character `start`, outermost first; of a heading that begins there, its parents."""
    path: list[Heading] = []
    for heading in found:
        if heading.start > start:
            break
        path = [outer for outer in path if outer.level < heading.level]
        if heading.start < start:
            path.append(heading)
    return [heading.title for heading in path]


def joined(title: str, path: list[str]) -> str:
    """Title and headings as one line; of long paths, the middle is left out.

    A first heading that repeats the title is left out too.

    >>> joined("The cable", ["The Cable", "1866"])
    'The cable › 1866'
    """
    if path and _plain(title).casefold() == path[0].casefold():
        path = path[1:]
    parts = [_shortened(part) for part, _ in groupby([" ".join(title.split()), *path]) if part]
    while len(parts) > 2 and len(SEPARATOR.join(parts)) > _MAX_PATH:
        del parts[1]
    return SEPARATOR.join(parts)


def _shortened(part: str) -> str:
    return part if len(part) <= _MAX_PART else part[: _MAX_PART - 1].rstrip() + "…"


def heading_contexts(documents: pl.DataFrame, text_units: pl.DataFrame) -> pl.Series:
    """The context of each text unit: the title of its document, then the headings in force where it begins.

    Args:
        documents: id, title (null: it has none), text.
        text_units: document_id, start_char (null: only the title counts).
    """
    titles = {id_: title or "" for id_, title in documents.select("id", "title").iter_rows()}
    headings_of = {id_: headings(text or "") for id_, text in documents.select("id", "text").iter_rows()}
    contexts = [
        joined(titles.get(document, ""), heading_path(headings_of.get(document, []), -1 if start is None else start))
        for document, start in text_units.select("document_id", "start_char").iter_rows()
    ]
    return pl.Series("context", contexts, dtype=pl.String)
