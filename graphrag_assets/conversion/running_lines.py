"""Running headers, footers and page numbers of printed pages: lines that repeat at the edge of page after page."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

_EDGE_LINES = 2
_MAX_LENGTH = 100
_MIN_PAGES = 3
_MIN_SHARE = 0.4  # of the pages from the first to the last with the line; left and right pages may differ
_NUMBER = re.compile(r"\d{1,9}")


def without_running_lines(pages: list[str]) -> list[str]:
    """The text of each page without its running lines.

    A running line is the same on at least three pages and on 40 % of the pages from its first to its last; a number in
    it may count the pages. It is one of the outermost two lines of its page, on a short page the outermost one. On the
    first page a header with letters is kept: it may be the only place of the document's title.
    """
    lines = [page.split("\n") for page in pages]
    dropped = _running(lines)
    return [
        "\n".join(line for number, line in enumerate(page) if number not in out)
        for page, out in zip(lines, dropped, strict=True)
    ]


def running_texts(pages: list[str]) -> Counter[str]:
    """The running lines that `without_running_lines` leaves out, and how often."""
    lines = [page.split("\n") for page in pages]
    return Counter(page[number].strip() for page, out in zip(lines, _running(lines), strict=True) for number in out)


def _running(pages: list[list[str]]) -> list[set[int]]:
    found = defaultdict(list)
    for number, page in enumerate(pages):
        for edge in (0, 1):
            for key in {key for line in _edge(page, edge) for key in _keys(page[line], number)}:
                found[edge, key].append(number)
    repeated = {key for key, on in found.items() if len(on) >= max(_MIN_PAGES, _MIN_SHARE * (on[-1] - on[0] + 1))}
    dropped: list[set[int]] = [set() for _ in pages]
    for number, page in enumerate(pages):
        for edge in (0, 1):
            for line in _edge(page, edge):
                if not any((edge, key) in repeated for key in _keys(page[line], number)):
                    break
                if number == edge == 0 and any(map(str.isalpha, page[line])):
                    break
                dropped[number].add(line)
    return dropped


def _edge(page: list[str], edge: int) -> list[int]:
    """The numbers of the outermost lines at the top (0) or bottom (1), from the edge inwards."""
    filled = [number for number, line in enumerate(page) if line.strip()]
    n_lines = min(_EDGE_LINES, max(1, len(filled) // 4))  # a page of few lines has text near its edges
    return filled[:n_lines] if edge == 0 else filled[::-1][:n_lines]


def _keys(line: str, page: int) -> Iterator[str]:
    """What a line has in common with those of other pages: its text, or its text with a number that counts pages."""
    text = " ".join(line.split()).casefold()
    if len(text) > _MAX_LENGTH:
        return
    yield text
    for number in _NUMBER.finditer(text):
        yield f"{text[: number.start()]}\0{int(number.group()) - page}\0{text[number.end() :]}"
