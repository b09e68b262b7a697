"""File formats: which reader a file has, by its ending or its content, and what that reader makes of it.

Nothing here raises for bad input: a problem has its remedy, and the rest of the file is read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Protocol

from graphrag_assets.contracts.records import ENCODING
from graphrag_assets.reading.chats import json_chats, numbered, whatsapp_record
from graphrag_assets.reading.decoding import Decoded, UnreadableError, decode
from graphrag_assets.reading.source_records import LoadOptions, Problem, Record, clean
from graphrag_assets.reading.tables import json_lines, json_table, parse_json, table_records, text_table
from graphrag_assets.reading.text_files import first_heading, subtitle_record, text_record

_ENDINGS = {
    "md": "md markdown mdx mkd qmd rmd",
    "txt": "txt text log",
    "adoc": "adoc asciidoc asc",
    "csv": "csv",
    "tsv": "tsv tab",
    "json": "json",
    "jsonl": "jsonl ndjson",
    "parquet": "parquet pq",
    "vtt": "vtt",
    "srt": "srt",
    "html": "html htm xhtml shtml",
    "eml": "eml",
    "mbox": "mbox mbx",
    "pdf": "pdf",
    "docx": "docx docm dotx dotm",
    "doc": "doc dot",
    "pptx": "pptx pptm ppsx potx",
    "ppt": "ppt pps",
    "xlsx": "xlsx xlsm xltx xlsb",
    "xls": "xls xlt",
    "odt": "odt ott",
    "ods": "ods ots",
    "odp": "odp otp",
    "rtf": "rtf",
    "epub": "epub",
    "ipynb": "ipynb",
    "tex": "tex latex ltx",
    "rst": "rst rest",
    "org": "org",
    "xml": "xml nxml jats dbk docbook",
    "bib": "bib",
    "msg": "msg",
}
_FORMATS = {ending: name for name, endings in _ENDINGS.items() for ending in endings.split()}
FORMATS = frozenset(_ENDINGS)
_TEXT = frozenset({"md", "txt", "adoc", "vtt", "srt"})
_TABLES = frozenset({"csv", "tsv", "json", "jsonl"})
_DECODED = _TEXT | _TABLES | {"html"}
"""Formats whose bytes are decoded before they are parsed."""
_REFUSED = {
    "audio": ("mp3 wav m4a aac ogg oga opus flac wma aiff amr", "Transcribe it, and index the text or subtitles."),
    "video": ("mp4 mkv mov avi webm wmv m4v mpg mpeg flv 3gp", "Transcribe it, and index the subtitles (vtt, srt)."),
    "picture": (
        "png jpg jpeg gif bmp tif tiff webp heic heif avif ico svg psd",
        "Recognize its text (OCR), and index that; a scan as a PDF with text.",
    ),
    "archive": ("zip tar gz tgz bz2 xz 7z rar zst jar iso dmg", "Unpack it into the input folder."),
}
_KINDS = {ending: (kind, remedy) for kind, (endings, remedy) in _REFUSED.items() for ending in endings.split()}
_BINARY_REMEDY = "Export it as text or PDF, or move it out of the input folder."
_MAGIC = (
    (b"%PDF-", "pdf"),
    (b"{\\rtf", "rtf"),
    (b"PAR1", "parquet"),
    (b"From ", "mbox"),
)
_PACKAGES = (
    (b"word/document.xml", "docx"),
    (b"ppt/presentation.xml", "pptx"),
    (b"xl/workbook.xml", "xlsx"),
    (b"application/epub+zip", "epub"),
    (b"opendocument.text", "odt"),
    (b"opendocument.spreadsheet", "ods"),
    (b"opendocument.presentation", "odp"),
)
_MAIL_HEADER = re.compile(
    rb"\A(?:(?:[A-Za-z][A-Za-z0-9-]*:[^\n]*|[ \t][^\n]*)\n)*?(?:From|Message-I[Dd]):[^\n]*@[^\n]*\n", re.I
)
_MAIL_DATE = re.compile(rb"^(?:Date|Received|Message-I[Dd]|MIME-Version):", re.MULTILINE | re.IGNORECASE)
_HTML = re.compile(rb"\A\s*(?:<!--.*?-->\s*)*<(?:!doctype html|html)[\s>]", re.IGNORECASE | re.DOTALL)


class RefusedKind(Problem):
    """A file of a kind that has no text; `kind` in the singular."""

    @property
    def kind(self) -> str:
        return self.error


class Converter(Protocol):
    """Reads files of formats that may expand to gigabytes or crash their library, given their bytes.

    `column` is the text column of tables.
    """

    def __call__(self, data: bytes, file_format: str, column: str, options: LoadOptions) -> list[Record | Problem]: ...


def format_of(path: str, data: bytes | None = None) -> str | None:
    """Return the format of a file by its ending, else by its content; None without either.

    A file with another ending is text if it decodes as text: source code, configuration, logs.
    """
    ending = PurePosixPath(path).suffix.lower().removeprefix(".")
    if ending in _FORMATS:
        return _FORMATS[ending]
    return None if data is None or ending in _KINDS else _format_of_content(data)


def _format_of_content(data: bytes) -> str:
    head = data[:4096]
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head.startswith(b"PK\x03\x04"):
        return next((name for mark, name in _PACKAGES if mark in data), "txt")
    if _MAIL_HEADER.match(head.replace(b"\r\n", b"\n")) and _MAIL_DATE.search(head):
        return "eml"
    return "html" if _HTML.match(head) else "txt"


def refused_kind(path: str) -> RefusedKind | None:
    """Return why no file with this ending is read; None if it may be."""
    kind = _KINDS.get(PurePosixPath(path).suffix.lower().removeprefix("."))
    return RefusedKind(*kind) if kind else None


def is_plain_text(file_format: str) -> bool:
    """Whether the file's bytes are one document's text."""
    return file_format in _TEXT


def read_records(
    path: str, data: bytes, options: LoadOptions, convert: Converter, slack: Mapping[str, str] | None = None
) -> Iterator[Record | Problem]:
    """Yield the documents of a file in its order, and what is wrong with the others.

    `slack`: names of the users of the export of Slack that the file is of, by their ids.
    """
    file_format = format_of(path, data) or "txt"
    column = options.text_column_of(path)
    try:
        if file_format not in _DECODED:
            for item in convert(data, file_format, column, options):
                yield _titled(replace(item, format=file_format)) if isinstance(item, Record) else item
            return
        decoded = decode(data, options.text_encoding)
    except UnreadableError as error:
        yield RefusedKind("binary", _BINARY_REMEDY) if _is_unknown(path) else Problem(error.error, error.hint)
        return
    if decoded.doubt:
        yield Problem(*decoded.doubt, stage=ENCODING)
    for item in _decoded(decoded, path, file_format, column, options, convert, slack):
        yield _named_channel(item, path) if slack is not None and isinstance(item, Record) else item


def _named_channel(record: Record, path: str) -> Record:
    """Return a day of a channel of Slack with the channel's name, which is its folder's, in the title."""
    file = PurePosixPath(path)
    return replace(record, title=record.title or f"{file.parent.name} {file.stem}")


def _is_unknown(path: str) -> bool:
    return format_of(path) is None


def _decoded(
    decoded: Decoded,
    path: str,
    file_format: str,
    column: str,
    options: LoadOptions,
    convert: Converter,
    slack: Mapping[str, str] | None,
) -> Iterator[Record | Problem]:
    text = clean(decoded.text)
    try:
        for item in _from_text(text, file_format, column, options, convert, slack):
            if isinstance(item, Record):
                item = replace(item, encoding=decoded.encoding, format=file_format)
            yield item
    except UnreadableError as error:
        yield Problem(error.error, error.hint)


def _titled(record: Record) -> Record:
    """Return the record with its first heading as the title, if it is a document of its own without one."""
    titled = record.title or record.row_number or record.format == "pdf"  # whose headings are guesses
    return record if titled else replace(record, title=first_heading(record.text))


def _from_text(
    text: str,
    file_format: str,
    column: str,
    options: LoadOptions,
    convert: Converter,
    slack: Mapping[str, str] | None,
) -> Iterator[Record | Problem]:
    if not text.strip():
        yield Problem("the file contains only white space", "Delete it, or add text to it.")
    elif file_format in ("vtt", "srt"):
        yield from subtitle_record(text, file_format)
    elif file_format == "txt":
        yield whatsapp_record(text) or text_record(text, file_format, options)
    elif file_format in _TEXT:
        yield text_record(text, file_format, options)
    elif file_format == "html":
        for item in convert(text.encode(), file_format, column, options):
            yield _titled(item) if isinstance(item, Record) else item
    elif file_format == "json":
        value = parse_json(text)
        if isinstance(value, Problem) and (lines := json_lines(text)):
            value = lines
        if isinstance(value, Problem):
            yield value
        elif chats := json_chats(value, slack):
            yield from numbered(chats)
        else:
            yield from table_records(json_table(value, column), column, options)
    elif file_format == "jsonl" and (chats := json_chats(json_lines(text))):
        yield from numbered(chats)
    else:
        yield from table_records(text_table(text, file_format, column), column, options)
