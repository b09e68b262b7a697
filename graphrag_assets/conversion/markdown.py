"""Markdown text and title of one PDF, Word, PowerPoint or HTML file; runs in the conversion worker."""

import io
from typing import NamedTuple

from markitdown import StreamInfo, converters


class Markdown(NamedTuple):
    """A converted file; `title` only if the file has one."""

    text: str
    title: str | None = None


def to_markdown(data: bytes, file_format: str) -> Markdown:
    """Convert a file of the format; raises the exceptions of the library of the format.

    Only the converter of the format is tried: another one would read a damaged PDF as plain text.
    """
    converter = getattr(converters, f"{file_format.capitalize()}Converter")()
    result = converter.convert(io.BytesIO(data), StreamInfo(extension=f".{file_format}"))
    return Markdown(result.markdown, result.title)
