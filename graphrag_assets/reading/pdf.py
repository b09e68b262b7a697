"""PDF files with pypdfium2: the text of each page in reading order, its title and date."""

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as raw
from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

from graphrag_assets.reading.markdown import headings
from graphrag_assets.reading.source_records import PASSWORD, Problem, Record, document, in_pages, stated

_SCAN = Problem(
    "the PDF has no text: its pages are pictures", "Recognize its text (OCR) first, for example with ocrmypdf."
)
_HYPHEN = re.compile(r"(?<=\w)(?:[\x02\ufffe\u00ad]\s*|-[ \t]*\n(?=[a-zß-öø-ÿ]))(\w)")
_RUNNING_EDGE = 2  # lines at the top and bottom of a page that may repeat
_RUNNING_SHARE = 0.5  # of the pages; at least 3
_COLUMN_WORDS = 4  # mean words of a line on either side of a gutter; cells of tables have fewer
_COLUMN_LINES = 5
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LEFT_TO_RIGHT = re.compile(
    r"[^\W\u0590-\u08ff\ufb1d-\ufefc](?:[^\n\u0590-\u08ff\ufb1d-\ufefc]*[^\W\u0590-\u08ff\ufb1d-\ufefc])?"
)
_SPACE = 0.15  # of the height of a line
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_HEADING_WORDS = 14
_HEADING_LINES = 3
_TITLE_WITHIN = 300  # characters of the first page
_HEADING_SIZE = 1.1  # of the size of most characters


class _Line(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float
    text: str


def read_pdf(data: bytes) -> list[Record | Problem]:
    """Return the one document of a PDF, its pages as places, or the problem that it has no readable text.

    Raises:
        pypdfium2.PdfiumError: the file is damaged.
    """
    try:
        pdf = PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            return [PASSWORD]
        raise
    with pdf:
        if pdf.get_formtype() == raw.FORMTYPE_NONE:
            texts = [_page_text(page) for page in pdf]
        else:
            pdf.init_forms()
            texts = [_form_text(pdf, number) for number in range(len(pdf))]
        pages = _without_running_lines(texts)
        pictures = [number for number, page in enumerate(pdf, 1) if not pages[number - 1].strip() and _shows(page)]
        information = pdf.get_metadata_dict()
    text, places = in_pages(pages, "page")
    if not text:
        return [_SCAN]
    about = {name.lower(): stated(value) for name, value in information.items()}
    about["title"] = about.get("title") or _heading_at_start(text)
    record = document(text, about, places)
    return [record, _picture_pages(pictures)] if pictures else [record]


def _shows(page: PdfPage) -> bool:
    """Whether a page has a picture."""
    return next(page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=2), None) is not None


def _picture_pages(numbers: list[int]) -> Problem:
    pages = ", ".join(map(str, numbers[:20])) + (", …" if len(numbers) > 20 else "")
    which = f"page {pages} is a picture" if len(numbers) == 1 else f"pages {pages} are pictures"
    return Problem(f"{which} without text; the other pages are indexed", _SCAN.hint)


def _page_text(page: PdfPage) -> str:
    text_page = page.get_textpage()
    text = text_page.get_text_range()
    lines = _columns(text_page) or text.split("\r\n")
    if _RIGHT_TO_LEFT.search(text):
        text = "\r\n".join(_lines_by_position(text_page))
        lines = text.split("\r\n")
    return _HYPHEN.sub(_joined, _marked(lines, _headings(text_page, text)))


def _form_text(pdf: PdfDocument, number: int) -> str:
    """Return the text of a page of a form, its values beside their labels, as they stand on the page."""
    page = pdf[number]
    page.flatten()  # draws the values
    page.close()
    text_page = pdf[number].get_textpage()
    pieces = [_piece(text_page, rectangle) for rectangle in range(text_page.count_rects())]
    pieces.sort(key=lambda piece: (-piece.bottom, piece.left))
    rows = (sorted(row, key=lambda piece: piece.left) for row in _rows(pieces))
    return "\n".join(" ".join(piece.text.strip() for piece in row) for row in rows)


def _joined(hyphen: re.Match[str]) -> str:
    """Join the parts of a word that a line break cuts; a hyphen before a capital or digit stays."""
    return hyphen[1] if hyphen[1].islower() else "-" + hyphen[1]


# --- columns --------------------------------------------------------------------------------------------


def _columns(text_page: PdfTextPage) -> list[str]:
    """Return the lines of a page whose file draws two columns of prose line by line, in reading order; else nothing.

    Most files draw a column at a time, which is the order that PDFium gives. Here each line of the left column is
    followed by its neighbor in the right one, beyond a gutter that many lines share. Rows of a table look alike, but
    hold few words.
    """
    pieces = [_piece(text_page, number) for number in range(text_page.count_rects())]
    pieces = [piece for piece in pieces if piece.text.strip()]
    pairs = [
        (left, right)
        for left, right in pairwise(pieces)
        if _same_line(left, right) and right.left - left.right > right.top - right.bottom
    ]
    if len(pairs) < _COLUMN_LINES:
        return []
    (starts, n_lines), *_ = Counter(round(right.left / 3) for _, right in pairs).most_common(1)
    prose = [(left, right) for left, right in pairs if abs(right.left / 3 - starts) <= 1]
    words = [min(len(left.text.split()), len(right.text.split())) for left, right in prose]
    if n_lines < _COLUMN_LINES or statistics.median(words) < _COLUMN_WORDS:
        return []
    gutter = min(right.left for _, right in prose) - 1
    top, bottom = max(right.top for _, right in prose), min(right.bottom for _, right in prose)
    lines, columns = [], ([], [])  # type: tuple[list[str], tuple[list[str], list[str]]]
    for row in _rows(pieces):
        inside = bottom - 1 <= row[0].bottom and row[0].top <= top + 1
        if inside and not any(piece.left < gutter < piece.right for piece in row):
            for piece in row:
                columns[piece.left >= gutter].append(piece.text.strip())
        else:
            if row[0].bottom < bottom and (columns[0] or columns[1]):
                lines += [*columns[0], *columns[1]]
                columns = ([], [])
            lines.append(" ".join(piece.text.strip() for piece in row))
    return [*lines, *columns[0], *columns[1]]


def _piece(text_page: PdfTextPage, number: int) -> _Line:
    left, bottom, right, top = text_page.get_rect(number)
    return _Line(left, bottom, right, top, text_page.get_text_bounded(left, bottom, right, top).replace("\r\n", " "))


def _same_line(one: _Line, other: _Line) -> bool:
    return min(one.top, other.top) - max(one.bottom, other.bottom) > 0.4 * min(
        one.top - one.bottom, other.top - other.bottom
    )


def _rows(pieces: list[_Line]) -> Iterator[list[_Line]]:
    """Yield the pieces of each line, in the order of the file."""
    row: list[_Line] = []
    for piece in pieces:
        if row and not _same_line(row[-1], piece):
            yield row
            row = []
        row.append(piece)
    if row:
        yield row


# --- lines from right to left ---------------------------------------------------------------------------


def _lines_by_position(text_page: PdfTextPage) -> list[str]:
    """Return the lines of a page with Arabic or Hebrew in reading order, by where their characters stand.

    Programs write them in the order of reading or of the page, some in both within one line.
    """
    lines: list[list[_Line]] = [[]]
    for number in range(text_page.count_chars()):
        character = chr(raw.FPDFText_GetUnicode(text_page, number))
        if character == "\n":
            lines.append([])
        elif character != "\r":
            lines[-1].append(_Line._make((*text_page.get_charbox(number, loose=True), character)))
    return [_in_reading_order([*_ligatures(line)]) for line in lines]


def _ligatures(line: list[_Line]) -> Iterator[_Line]:
    """Yield the characters of a line; those of one glyph, as lam and alef, are in the file from left to right."""
    for _, group in groupby(line, lambda character: character[:4]):
        glyph = list(group)
        yield from reversed(glyph) if any(_RIGHT_TO_LEFT.match(character.text) for character in glyph) else glyph


def _in_reading_order(line: list[_Line]) -> str:
    """Return the text of a line of characters. Gaps between them are its spaces, where the file has a space, too."""
    written = "".join(character.text for character in line)
    if not _RIGHT_TO_LEFT.search(written):
        return written
    words = [list(word) for is_word, word in groupby(line, lambda character: bool(character.text.strip())) if is_word]
    at_edge = {character for word in words for character in (word[0], word[-1])} if len(words) > 1 else set(line)
    drawn = sorted((character for word in words for character in word), key=lambda character: -character.right)
    visual = drawn[0].text
    for before, after in pairwise(drawn):
        is_gap = before.left - after.right > _SPACE * (after.top - after.bottom)
        visual += " " * (is_gap and not at_edge.isdisjoint((before, after))) + after.text
    return _LEFT_TO_RIGHT.sub(lambda run: run[0][::-1].translate(_MIRRORED), visual.translate(_MIRRORED))


# --- headings and running lines -------------------------------------------------------------------------


def _headings(text_page: PdfTextPage, text: str) -> set[str]:
    """Return the short lines that are set larger than most characters of the page."""
    sizes: list[tuple[str, float]] = []
    position = 0
    for line in text.split("\r\n"):
        if line.strip():
            sizes.append((line, _font_size(text_page, position)))
        position += len(line) + 2
    if not sizes:
        return set()
    usual = Counter[float]()
    for line, size in sizes:
        usual[size] += len(line)
    (body, _), *_ = usual.most_common(1)
    return {
        line.strip()
        for line, size in sizes
        if size >= _HEADING_SIZE * body
        and len(line.split()) <= _HEADING_WORDS
        and any(map(str.isalpha, line))
        and not line.rstrip().endswith((".", ",", ";"))
    }


def _font_size(text_page: PdfTextPage, position: int) -> float:
    """Return the size of a character in points; some programs write it into the matrix instead of the font."""
    matrix = raw.FS_MATRIX()
    scale = abs(matrix.a) if raw.FPDFText_GetMatrix(text_page, position, matrix) else 1.0
    return round(raw.FPDFText_GetFontSize(text_page, position) * (scale or 1.0), 1)


def _marked(lines: Iterable[str], headings: set[str]) -> str:
    """Mark headings as Markdown: up to three lines of them in a row are one, more are a passage in large letters."""
    marked: list[str] = []
    for is_heading, group in groupby(lines, lambda line: line.strip() in headings):
        run = list(group)
        if is_heading and len(run) <= _HEADING_LINES:
            marked += ["", "## " + " ".join(line.strip() for line in run)]
        else:
            marked += run
    return "\n".join(marked)


def _without_running_lines(pages: list[str]) -> list[str]:
    """Drop the lines that repeat at the edge of at least half of the pages, but for a number that counts them.

    The first page keeps its own: its header may be the only place of the title.
    """
    edges = [_edge_lines(page) for page in pages]
    counts = Counter(key for edge in edges for key in set(edge.values()))
    running = {key for key, n in counts.items() if n >= max(3, _RUNNING_SHARE * len(pages))}
    texts = []
    for number, (page, edge) in enumerate(zip(pages, edges, strict=True)):
        drop = {line for line, key in edge.items() if key in running and (number or not any(map(str.isalpha, key)))}
        texts.append("\n".join(text for line, text in enumerate(page.split("\n")) if line not in drop))
    return texts


def _edge_lines(page: str) -> dict[int, str]:
    """Return the outermost lines of a page by number, with # for digits."""
    lines = page.split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    n_lines = min(_RUNNING_EDGE, max(1, len(filled) // 4))
    return {number: re.sub(r"\d+", "#", lines[number].strip()) for number in (*filled[:n_lines], *filled[-n_lines:])}


def _heading_at_start(text: str) -> str | None:
    """Return the heading that the first page begins with, unless it is that of a numbered section."""
    heading = next(iter(headings(text[:_TITLE_WITHIN])), None)
    return heading.title if heading and not heading.title[0].isdigit() else None
