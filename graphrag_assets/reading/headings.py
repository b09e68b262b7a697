"""Markdown texts: their headings and tables, and their words without marks."""

import re
from typing import NamedTuple

_LINE = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)|(?P<marks>#{1,6})[ \t]+(?P<heading>\S[^\n]*)"
    r"|(?<![^\n]\n)(?P<words>[^\s#>|`~=+*<-][^\n]{0,200})\n {0,3}(?P<underline>=+|-{2,})[ \t]*)$",
    re.MULTILINE,
)
_CLOSING_MARKS = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"[*`]|(?<!\w)_+|_+(?!\w)")
_FENCED = re.compile(r"(^```.*?^```[ \t]*$)", re.MULTILINE | re.DOTALL)
_EMPHASIZED = re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*\n]+?)(?<=\S)\1(?![\w*])")
_ESCAPE = re.compile(r"\\([!\"#$%&'()*+,\-./:;<=>?@\[\]^_`{}~\\])")  # a bar in a cell stays


class Heading(NamedTuple):
    """A heading of a text: its first character, its level from 1 to 6, and its words."""

    start: int
    level: int
    title: str


def headings(text: str) -> list[Heading]:
    """Return the headings of a Markdown text in order, but for lines of fenced code.

    A heading begins with # marks, or is a line by itself that is underlined with = or -. Converted documents are
    Markdown, too.

    >>> headings("# The cable\\n\\n## *1866* ##\\n")
    [Heading(start=0, level=1, title='The cable'), Heading(start=13, level=2, title='1866')]
    """
    outline: list[Heading] = []
    open_fence = ""
    for line in _LINE.finditer(text):
        fence, info = line["fence"], line["info"]
        if open_fence:
            if fence and fence.startswith(open_fence) and not info.strip():
                open_fence = ""
        elif fence:
            if "`" not in fence or "`" not in info:  # otherwise it is code within a line
                open_fence = fence
        elif line["marks"]:
            if title := plain_title(_CLOSING_MARKS.sub("", line["heading"])):
                outline.append(Heading(line.start("marks"), len(line["marks"]), title))
        elif title := plain_title(line["words"]):
            outline.append(Heading(line.start("words"), 1 if line["underline"].startswith("=") else 2, title))
    return outline


def plain_title(title: str) -> str:
    """Return the words of a heading on one line, without links and emphasis."""
    return " ".join(_EMPHASIS.sub("", _LINK.sub(r"\1", title)).split())


def plain_words(markdown: str, *replaced: tuple[re.Pattern[str], str]) -> str:
    """Return Markdown without emphasis and escapes, and with what else is to be `replaced`, but for fenced code."""
    parts = _FENCED.split(markdown)
    for number in range(0, len(parts), 2):
        for pattern, by in (*replaced, (_EMPHASIZED, r"\2"), (_ESCAPE, r"\1")):
            parts[number] = pattern.sub(by, parts[number])
    return "".join(parts)


_RULE = frozenset("|-: \t")


class TableRows(NamedTuple):
    """The rows of a Markdown table: from their first character to the one after the last, and the names of columns."""

    start: int
    end: int
    header: str


def tables(text: str) -> list[TableRows]:
    """Return the tables of a Markdown text, in order.

    >>> tables("| a | b |\\n|---|---|\\n| 1 | 2 |\\n")
    [TableRows(start=20, end=30, header='a | b')]
    """
    rows: list[TableRows] = []
    position, header, table = 0, "", None
    for line in text.splitlines(keepends=True):
        end = position + len(line)
        if "|" not in line:
            header, table = "", None
        elif table is not None:
            table = rows[-1] = table._replace(end=end)
        elif header and "-" in line and _RULE.issuperset(line.strip()):
            table = TableRows(end, end, " ".join(header.strip(" |\t\n").split()))
            rows.append(table)
        else:
            header = line
        position = end
    return rows
