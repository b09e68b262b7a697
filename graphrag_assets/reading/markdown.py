"""Markdown: its headings and tables, its words without marks, and a tree of HTML or XML as Markdown."""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lxml import etree

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


def table_of(rows: list[list[str]]) -> str:
    """Return rows, the first of them the header, as a Markdown table."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines[1:1] = ["|" + " --- |" * max(map(len, rows), default=0)]
    return "\n".join(lines) if rows else ""


# --- from trees -----------------------------------------------------------------------------------------

Kind = Callable[[etree._Element], str]
"""What an element of a tree is: of `_BLOCKS`, break, space, word, note, skip; others stand within a paragraph."""
_BLOCKS = frozenset(
    ["block", "title", "list", "numbered", "item", "table", "row", "cell", "caption", "pre", "section"]
) | {f"h{level}" for level in range(1, 7)}
_HTML = {
    **{name: name for name in ("h1", "h2", "h3", "h4", "h5", "h6", "pre", "table", "caption")},
    **{"ul": "list", "menu": "list", "ol": "numbered", "li": "item", "tr": "row", "td": "cell", "th": "cell"},
    **dict.fromkeys(("head", "script", "style", "noscript", "template", "svg", "img"), "skip"),
    **dict.fromkeys(
        ("p", "div", "dl", "dt", "dd", "blockquote", "hr", "section", "article", "main", "header", "footer", "summary",
         "details", "figure", "figcaption", "form", "fieldset", "address", "center", "nav", "aside", "body"),
        "block",
    ),
    "br": "break",
}  # fmt: skip
_LANGUAGE = re.compile(r"(?:^code |language-)([\w+-]+)(?<!literal-block)")
_MAX_SPAN = 100  # columns or rows of one cell


def local_name(node: etree._Element) -> str:
    """Return the name of an element without its namespace, nothing of comments and instructions."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def parse_xml(data: bytes) -> etree._Element:
    """Return the root of a part of a package; entities are not resolved, damaged parts are read as far as they go."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    root = etree.fromstring(data, parser)
    if root is None:
        raise ValueError("no element was found")
    return root


def html_kind(element: etree._Element) -> str:
    """Return what an element of HTML is."""
    return _HTML.get(local_name(element).lower(), "")


def markdown(root: etree._Element, kind: Kind = html_kind) -> str:
    """Return the text of a tree as Markdown: headings, paragraphs, lists, tables and notes."""
    return _Writer(kind).text(root)


class _Writer:
    def __init__(self, kind: Kind) -> None:
        self._kind_of_element = kind
        self._notes: list[str] = []

    def text(self, root: etree._Element) -> str:
        blocks = [*self._blocks(root, 1)]
        notes = (f"[^{number}]: {note}" for number, note in enumerate(self._notes, start=1))
        return "\n\n".join(filter(None, (*blocks, *notes)))

    def _kind(self, node: etree._Element) -> str:
        return self._kind_of_element(node) if isinstance(node.tag, str) else "skip"

    def _blocks(self, parent: etree._Element, level: int) -> Iterator[str]:
        """Yield the blocks in an element; `level`: of a title there."""
        words = [_flat(parent.text)]
        for child in parent:
            kind = self._kind(child)
            is_block = kind in _BLOCKS or (
                kind not in ("skip", "note") and any(self._kind(node) in _BLOCKS for node in child.iterdescendants())
            )
            if is_block:
                yield _paragraph(words)
                words.clear()
                yield from self._block(child, kind, level)
            else:
                words += self._inline(child, kind)
            words.append(_flat(child.tail))
        yield _paragraph(words)

    def _block(self, element: etree._Element, kind: str, level: int) -> Iterator[str]:
        if kind in ("title", "h1", "h2", "h3", "h4", "h5", "h6"):
            title = self._line(element)
            yield f"{'#' * (int(kind[1]) if kind != 'title' else min(6, level))} {title}" if title else ""
        elif kind in ("list", "numbered"):
            yield self._list(element, kind, level)
        elif kind == "table":
            yield from self._table(element, level)
        elif kind == "pre":
            language = _LANGUAGE.search(element.get("class", ""))
            code = "".join(map(str, element.itertext())).strip("\n")
            yield f"```{language[1] if language else ''}\n{code}\n```"
        else:
            yield from self._blocks(element, level + (kind == "section"))

    def _inline(self, element: etree._Element, kind: str) -> Iterator[str]:
        if kind in ("break", "space"):
            yield "\n" if kind == "break" else " "
        elif kind == "note":
            self._notes.append("")
            number = len(self._notes)
            self._notes[number - 1] = self._line(element)
            yield f"[^{number}]"
        elif kind != "skip":
            around = " " if kind == "word" or kind in _BLOCKS else ""
            yield around + _flat(element.text)
            for child in element:
                yield from self._inline(child, self._kind(child))
                yield _flat(child.tail)
            yield around

    def _line(self, element: etree._Element) -> str:
        """Return the words of an element on one line."""
        return " ".join("".join(self._inline(element, "")).split())

    def _list(self, element: etree._Element, kind: str, level: int) -> str:
        start = element.get("start", "1")
        number = int(start) if start.isdecimal() and len(start) < 9 else 1
        lines: list[str] = []
        for child in element:
            mark = f"{number}. " if kind == "numbered" else "- "
            body = "\n".join(filter(None, self._blocks(child, level)))
            if self._kind(child) in ("list", "numbered"):  # a list within a list, beside its items
                lines.append("  " + self._list(child, self._kind(child), level).replace("\n", "\n  "))
            elif body and self._kind(child) != "skip":
                lines.append(mark + body.replace("\n", "\n" + " " * len(mark)))
                number += 1
        return "\n".join(lines)

    def _table(self, table: etree._Element, level: int) -> Iterator[str]:
        """Yield a table after its caption; a cell that spans several columns or rows is repeated in each.

        A table of one column is a frame around the blocks in its cells.
        """
        yield from (self._line(node) for node in table if self._kind(node) == "caption")
        cells_by_row = [[node for node in row if self._kind(node) == "cell"] for row in self._rows(table)]
        if max(map(len, cells_by_row), default=0) < 2:
            for cell in itertools.chain(*cells_by_row):
                yield from self._blocks(cell, level)
            return
        rows: list[list[str]] = []
        spans: dict[int, tuple[str, int]] = {}
        for row in cells_by_row:
            cells: list[str] = []
            for cell in (*row, None):
                while len(cells) in spans:
                    text, n_rows = spans.pop(len(cells))
                    if n_rows > 1:
                        spans[len(cells)] = text, n_rows - 1
                    cells.append(text)
                if cell is not None:
                    text = self._line(cell).replace("|", "\\|")
                    for _ in range(_span(cell, "colspan", "number-columns-spanned", "number-columns-repeated")):
                        if (n_rows := _span(cell, "rowspan", "number-rows-spanned")) > 1:
                            spans[len(cells)] = text, n_rows - 1
                        cells.append(text)
            if any(cells):
                rows.append(cells)
        yield table_of(rows)

    def _rows(self, element: etree._Element) -> Iterator[etree._Element]:
        for child in element:
            if self._kind(child) == "row":
                yield child
            elif self._kind(child) not in ("table", "skip", "caption"):
                yield from self._rows(child)


def _span(cell: etree._Element, *names: str) -> int:
    value = next((value for name, value in cell.attrib.items() if str(name).rpartition("}")[2] in names), "1")
    return min(int(value), _MAX_SPAN) if str(value).isdecimal() and len(value) < 9 else 1


def _flat(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "")


def _paragraph(words: list[str]) -> str:
    return "\n".join(line.strip() for line in re.sub(" +", " ", "".join(words)).split("\n")).strip()
