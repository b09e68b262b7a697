"""File formats: which reader a file has, by its ending or its content, and what that reader makes of it.

Nothing here raises for bad input: a problem has its remedy, and the rest of the file is read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Protocol

from graphrag_assets.contracts.records import ENCODING
from graphrag_assets.reading.chats import json_chats, numbered, whatsapp_record
from graphrag_assets.reading.decoding import UnreadableError, decode
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
    """A file of a kind that has no text, which `error` names in the singular."""


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
    file_format, column = format_of(path, data) or "txt", options.text_column_of(path)
    encoding = None
    found: Iterable[Record | Problem]
    try:
        if file_format in _DECODED:
            text, encoding, doubt = decode(data, options.text_encoding)
            if doubt:
                yield Problem(*doubt, stage=ENCODING)
            found = _from_text(clean(text), file_format, column, options, convert, slack)
        else:
            found = convert(data, file_format, column, options)
        for item in found:
            if isinstance(item, Record):
                title = item.title or _title(item, file_format, path, slack if encoding else None)
                item = replace(item, title=title, encoding=encoding, format=file_format)
            yield item
    except UnreadableError as error:
        is_unknown = encoding is None and format_of(path) is None
        yield RefusedKind("binary", _BINARY_REMEDY) if is_unknown else Problem(error.error, error.hint)


def _title(record: Record, file_format: str, path: str, slack: Mapping[str, str] | None) -> str | None:
    """Return the title of a document that states none: the channel of a day of Slack, else the first heading."""
    if slack is not None:
        return f"{PurePosixPath(path).parent.name} {PurePosixPath(path).stem}"
    has_headings = file_format not in _TEXT | _TABLES | {"pdf"} and not record.row_number  # those of PDFs are guesses
    return first_heading(record.text) if has_headings else None


def _from_text(
    text: str,
    file_format: str,
    column: str,
    options: LoadOptions,
    convert: Converter,
    slack: Mapping[str, str] | None,
) -> Iterable[Record | Problem]:
    if not text.strip():
        return [Problem("the file contains only white space", "Delete it, or add text to it.")]
    if file_format in ("vtt", "srt"):
        return subtitle_record(text, file_format)
    if file_format in _TEXT:
        chat = whatsapp_record(text) if file_format == "txt" else None
        return [chat or text_record(text, file_format, options)]
    if file_format == "html":
        return convert(text.encode(), file_format, column, options)
    if file_format not in ("json", "jsonl"):
        return table_records(text_table(text, file_format, column), column, options)
    value = parse_json(text) if file_format == "json" else json_lines(text)
    if isinstance(value, Problem):
        value = json_lines(text) or value
    if isinstance(value, Problem):
        return [value]
    if chats := json_chats(value, slack):
        return numbered(chats)
    table = json_table(value, column) if file_format == "json" else text_table(text, file_format, column)
    return table_records(table, column, options)
