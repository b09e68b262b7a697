"""Kinds of files: which format a file has, by its ending and its content, and its documents.

Nothing here raises for bad input: a problem has its remedy, and the rest of the file is read.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from graphrag_assets.contracts.records import ENCODING
from graphrag_assets.reading.chats import whatsapp_record
from graphrag_assets.reading.decoding import UnreadableError, decode
from graphrag_assets.reading.source_records import (
    PASSWORD,
    LoadOptions,
    Problem,
    Record,
    clean,
    metadata_json,
    without_base64,
)
from graphrag_assets.reading.tables import read_delimited, read_json
from graphrag_assets.reading.text_files import first_heading, subtitle_record, text_record

_ENDINGS = {
    **{
        name: name
        for name in ["csv", "parquet", "vtt", "srt", "pdf", "rtf", "epub", "ipynb", "org", "bib", "msg", "vcf"]
    },
    "md": "md markdown mdx mkd qmd rmd",
    "txt": "txt text log",
    "adoc": "adoc asciidoc asc",
    "tsv": "tsv tab",
    "json": "json",
    "jsonl": "jsonl ndjson",
    "html": "html htm xhtml shtml",
    "eml": "eml emlx",
    "mht": "mht mhtml",
    "mbox": "mbox mbx",
    "docx": "docx docm dotx dotm",
    "doc": "doc dot",
    "pptx": "pptx pptm ppsx potx",
    "ppt": "ppt pps pot",
    "xlsx": "xlsx xlsm xltx xlsb",
    "xls": "xls xlt",
    "odt": "odt ott fodt",
    "ods": "ods ots",
    "odp": "odp otp fodp",
    "tex": "tex latex ltx",
    "rst": "rst rest",
    "xml": "xml nxml jats dbk docbook tei fb2 opml rss atom enex kml ttml",
    "ics": "ics ical vcs",
}
_FORMATS = {ending: name for name, endings in _ENDINGS.items() for ending in endings.split()}
FORMATS = frozenset(_ENDINGS)
_TEXT = frozenset({"md", "txt", "adoc", "vtt", "srt"})
_TABLES = frozenset({"csv", "tsv", "json", "jsonl"})
_DECODED = _TEXT | _TABLES | {"html"}
"""Formats whose bytes are decoded before they are parsed."""
_BINARY = frozenset(
    ["parquet", "pdf", "docx", "doc", "pptx", "ppt", "xlsx", "xls", "odt", "ods", "odp", "rtf", "epub", "msg"]
)
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
_MARKS = (
    ("pdf", re.compile(rb"\s*%PDF-")),
    ("rtf", re.compile(rb"\{\\rtf")),
    ("parquet", re.compile(rb"PAR1")),
    ("mbox", re.compile(rb"From \S+.*\r?\n[A-Za-z-]+:")),
    (
        "html",
        re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body)[\s>]", re.I | re.S),
    ),
    ("html", re.compile(rb"\s*<table[\s>]", re.I)),
    ("xml", re.compile(rb"\s*<\?xml\s")),
    ("ics", re.compile(rb"\s*BEGIN:V(?:CALENDAR|EVENT|TODO|JOURNAL)\b", re.I)),
    ("vcf", re.compile(rb"\s*BEGIN:VCARD\b", re.I)),
    ("vtt", re.compile(rb"WEBVTT\b")),
    ("srt", re.compile(rb"\s*\d+\r?\n\d\d:\d\d:\d\d,\d{3} --> ")),
)
"""How the files of a format begin."""
_PACKAGES = (
    ("docx", b"word/document"),
    ("pptx", b"ppt/presentation.xml"),
    ("xlsx", b"xl/workbook."),
    ("epub", b"application/epub+zip"),
    ("odt", b"opendocument.text"),
    ("ods", b"opendocument.spreadsheet"),
    ("odp", b"opendocument.presentation"),
)
_STREAMS = (
    ("encrypted", "EncryptedPackage"),
    ("msg", "__properties_version1.0"),
    ("doc", "WordDocument"),
    ("ppt", "PowerPoint Document"),
    ("xls", "Workbook"),
    ("xls", "Book"),
)
"""Parts of the packages of each format: files of a zip archive, streams of an OLE file."""
_CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?([\w-]+)", re.IGNORECASE)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADERS = re.compile(rb"(?:\d+\s*\n)?((?:[A-Za-z][A-Za-z0-9-]*:[^\n]*\n(?:[ \t][^\n]*\n)*){2,})")
_SENDER = re.compile(rb"^(?:From|Message-I[Dd]):[^\n]*(?:\n[ \t][^\n]*)*@", re.MULTILINE | re.IGNORECASE)
_MAIL_DATE = re.compile(rb"^(?:Date|Received|Message-I[Dd]|MIME-Version):", re.MULTILINE | re.IGNORECASE)
_GENERIC = re.compile(r"\W*(?:abstract|summary|(?:table of )?contents|introduction|inhalt\w*|sommaire|índice)\W*", re.I)


Converter = Callable[[bytes, str, str, LoadOptions], list[Record | Problem]]
"""Reads files that may expand to gigabytes or crash their library, given bytes, format and text column of tables."""


def _ending(path: str) -> str:
    return PurePosixPath(path).suffix.lower().removeprefix(".")


def format_of(path: str, data: bytes | None = None) -> str | None:
    """Return the format of a file by its ending and its content, `data`; None if neither tells.

    What the content says for certain counts, whatever the ending. What is only likely, as with pages and mails, counts
    where the ending is unknown or of a binary format that the content is not.
    """
    by_ending = _FORMATS.get(_ending(path))
    if data is None or _ending(path) in _KINDS:
        return by_ending
    content = _format_of_content(data)
    if by_ending is None:
        return content or "txt"
    if content in _BINARY or content == "encrypted":
        return by_ending if by_ending == "xlsx" and content == "ods" else content
    if by_ending in _BINARY:
        if by_ending in ("odt", "odp") and content == "xml":
            return by_ending
        return content or (_text_table_format(data) if _is_text(data) else by_ending)
    if by_ending == "txt" or (by_ending == "xml" and content == "html"):
        return content if content in ("vtt", "srt", "ics", "vcf", "html") else by_ending
    return by_ending


def _format_of_content(data: bytes) -> str | None:
    if data.startswith(b"PK\x03\x04"):
        return next((name for name, part in _PACKAGES if part in data), None)
    if data.startswith(_OLE):
        return next((name for name, stream in _STREAMS if stream.encode("utf-16-le") in data), None)
    head = data[:65536].removeprefix(b"\xef\xbb\xbf")
    if marked := next((name for name, mark in _MARKS if mark.match(head)), None):
        return marked
    headers = _HEADERS.match(head.replace(b"\r\n", b"\n"))
    return "eml" if headers and _SENDER.search(headers[1]) and _MAIL_DATE.search(headers[1]) else None


def _is_text(data: bytes) -> bool:
    return bool(data.strip()) and not re.search(rb"[\x00-\x08\x0e-\x1f]", data[:4096])


def _text_table_format(data: bytes) -> str:
    """Return csv for text whose first lines have as many delimiters: programs give it the ending of a sheet."""
    first, *others = data[:4096].splitlines()[:4]
    counts = ([line.count(mark) for line in (first, *others)] for mark in (b"\t", b";", b","))
    return "csv" if others and any(n[0] and len(set(n[:3])) == 1 for n in counts) else "txt"


def refused_kind(path: str) -> Problem | None:
    """Return why no file with this ending is read; None if it may be."""
    kind = _KINDS.get(_ending(path))
    return _refused(*kind) if kind else None


def _refused(kind: str, remedy: str) -> Problem:
    return Problem(f"{kind} files are not indexed", remedy)


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
    items: Iterable[Record | Problem]
    try:
        if file_format == "encrypted":
            items = [PASSWORD]
        elif file_format in _DECODED:
            declared = _CHARSET.search(data[:4096]) if file_format == "html" else None
            text, encoding, doubt = decode(data, options.text_encoding or (declared[1].decode() if declared else ""))
            if doubt:
                yield Problem(*doubt, stage=ENCODING)
            items = _from_text(clean(text), file_format, column, options, convert, slack)
        else:
            items = convert(data, file_format, column, options)
        for item in items:
            if isinstance(item, Record):
                title = item.title or _title(item, file_format, path, slack if encoding else None)
                yield _without_base64(replace(item, title=title, encoding=encoding, format=file_format))
            else:
                yield item
    except UnreadableError as error:
        is_unknown = encoding is None and format_of(path) is None
        yield _refused("binary", _BINARY_REMEDY) if is_unknown else Problem(error.error, error.hint)


def _without_base64(record: Record) -> Record:
    """Return a record without base64 in its text and metadata: its size stands there."""
    text, places, n = without_base64(record.text, record.places)

    def shorten(value: Any) -> Any:
        nonlocal n
        match value:
            case dict():
                return {name: shorten(item) for name, item in value.items()}
            case list():
                return [shorten(item) for item in value]
            case str():
                value, _, n_values = without_base64(value, ())
                n += n_values
        return value

    metadata = shorten(json.loads(record.raw_data or "{}"))
    if not n:
        return record
    metadata["left_out"] = {**metadata.get("left_out", {}), "base64": n}
    return replace(record, text=text, places=places, raw_data=metadata_json(metadata))


def _title(record: Record, file_format: str, path: str, slack: Mapping[str, str] | None) -> str | None:
    """Return the title of a document that states none: the channel of a day of Slack, else the first heading."""
    if slack is not None:
        return f"{PurePosixPath(path).parent.name} {PurePosixPath(path).stem}"
    has_headings = file_format not in _TEXT | _TABLES | {"pdf"} and not record.row_number  # those of PDFs are guesses
    heading = first_heading(record.text) if has_headings else None
    return heading if heading and not _GENERIC.fullmatch(heading) else None


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
    if file_format in ("csv", "tsv"):
        return read_delimited(text, file_format, column, options)
    return read_json(text, file_format, column, options, slack)
