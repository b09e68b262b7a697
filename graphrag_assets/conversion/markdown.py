"""Markdown text and title of one PDF, Word, PowerPoint or HTML file; runs in the conversion worker."""

import io
from typing import NamedTuple

from bs4 import BeautifulSoup, SoupStrainer  # type: ignore[attr-defined]  # it is public all the same
from markitdown import StreamInfo, converters

from graphrag_assets.conversion.landmarks import main_content
from graphrag_assets.conversion.running_lines import running_texts, without_running_lines
from graphrag_assets.pipeline.document_dates import date_of


class Markdown(NamedTuple):
    """A converted file; `title` and `date`, as it is written, only if the file has them."""

    text: str
    title: str | None = None
    date: str | None = None


_DATES = (
    "document_date",
    "article:published_time",
    "datepublished",
    "dcterms.issued",
    "dc.date",
    "dcterms.date",
    "date",
)
"""Names of the meta tags that tell when a page was published: Open Graph, schema.org, Dublin Core, and plain ones."""


def to_markdown(data: bytes, file_format: str) -> Markdown:
    """Convert a file of the format, HTML as UTF-8; raises the exceptions of the library of the format.

    Left out are landmarks of web pages other than their main content, and running lines of printed pages. Only the
    converter of the format is tried: another one would read a damaged PDF as plain text.
    """
    content = main_content(data.decode()).encode() if file_format == "html" else data
    converter = getattr(converters, f"{file_format.capitalize()}Converter")()
    result = converter.convert(io.BytesIO(content), StreamInfo(extension=f".{file_format}", charset="utf-8"))
    text = _without_running_lines(result.markdown, data) if file_format == "pdf" else result.markdown
    return Markdown(text, result.title, _stated_date(data.decode()) if file_format == "html" else None)


def _without_running_lines(text: str, pdf: bytes) -> str:
    """The text without running lines. That of a PDF with tables has no page breaks, so its pages are read for them."""
    if "\f" in text:
        return "\f".join(without_running_lines(text.split("\f")))
    from pdfminer.high_level import extract_text

    left_out, kept = running_texts(extract_text(io.BytesIO(pdf)).split("\f")), []
    for line in reversed(text.split("\n")):  # the first of all is kept
        if left_out[line.strip()] > 0:
            left_out[line.strip()] -= 1
        else:
            kept.append(line)
    return "\n".join(reversed(kept))


def _stated_date(html: str) -> str | None:
    """The date of the page: the first that a meta tag states, in the order of `_DATES`."""
    found: dict[str, str] = {}
    for tag in BeautifulSoup(html, "html.parser", parse_only=SoupStrainer("meta")).find_all("meta"):
        name = tag.get("name") or tag.get("property") or tag.get("itemprop") or ""
        found.setdefault(str(name).lower(), str(tag.get("content") or "").strip())
    return next((found[name] for name in _DATES if date_of(found.get(name, ""))), None)
