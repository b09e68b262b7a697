"""Markdown text and title of one PDF, Word, PowerPoint or HTML file; runs in the conversion worker."""

import io
from typing import NamedTuple

from markitdown import StreamInfo, converters

from graphrag_assets.conversion.landmarks import main_content
from graphrag_assets.conversion.running_lines import running_texts, without_running_lines


class Markdown(NamedTuple):
    """A converted file; `title` only if the file has one."""

    text: str
    title: str | None = None


def to_markdown(data: bytes, file_format: str) -> Markdown:
    """Convert a file of the format, HTML as UTF-8; raises the exceptions of the library of the format.

    Left out are landmarks of web pages other than their main content, and running lines of printed pages. Only the
    converter of the format is tried: another one would read a damaged PDF as plain text.
    """
    content = main_content(data.decode()).encode() if file_format == "html" else data
    converter = getattr(converters, f"{file_format.capitalize()}Converter")()
    result = converter.convert(io.BytesIO(content), StreamInfo(extension=f".{file_format}", charset="utf-8"))
    text = _without_running_lines(result.markdown, data) if file_format == "pdf" else result.markdown
    return Markdown(text, result.title)


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
