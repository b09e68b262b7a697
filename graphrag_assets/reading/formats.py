"""The formats of files: their endings, the functions that read them, and how a file's content tells its format."""

import re
from pathlib import PurePosixPath
from typing import NamedTuple


class Format(NamedTuple):
    """The endings of a format, and the function that reads it in the conversion process; none reads it at once.

    The module of the function loads its library.
    """

    endings: str
    reader: str = ""


FORMATS = {
    "md": Format("md markdown mdx mkd qmd rmd"),
    "txt": Format("txt text log"),
    "adoc": Format("adoc asciidoc asc"),
    "vtt": Format("vtt"),
    "srt": Format("srt"),
    "csv": Format("csv"),
    "tsv": Format("tsv tab"),
    "json": Format("json"),
    "jsonl": Format("jsonl ndjson"),
    "bib": Format("bib", "tables.read_bibliography"),
    "parquet": Format("parquet", "binary_tables.read_parquet"),
    "xlsx": Format("xlsx xlsm xltx xlsb", "binary_tables.read_sheets"),
    "xls": Format("xls xlt", "binary_tables.read_sheets"),
    "ods": Format("ods ots", "binary_tables.read_sheets"),
    "pdf": Format("pdf", "pdf.read_pdf"),
    "html": Format("html htm xhtml shtml", "web.read_page"),
    "mht": Format("mht mhtml", "mail.read_saved_page"),
    "eml": Format("eml emlx", "mail.read_mail"),
    "mbox": Format("mbox mbx", "mail.read_mailbox"),
    "ics": Format("ics ical vcs", "cards.read_cards"),
    "vcf": Format("vcf", "cards.read_cards"),
    "xml": Format("xml nxml jats dbk docbook tei fb2 opml rss atom enex kml ttml", "xml_files.read_xml"),
    "rst": Format("rst rest", "rst.read_rst"),
    "tex": Format("tex latex ltx", "markup.read_tex"),
    "org": Format("org", "markup.read_org"),
    "ipynb": Format("ipynb", "markup.read_notebook"),
    "docx": Format("docx docm dotx dotm", "office.read_docx"),
    "pptx": Format("pptx pptm ppsx potx", "office.read_slides"),
    "odt": Format("odt ott fodt", "office.read_opendocument"),
    "odp": Format("odp otp fodp", "office.read_opendocument"),
    "epub": Format("epub", "office.read_book"),
    "rtf": Format("rtf", "legacy.read_rtf"),
    "doc": Format("doc dot", "legacy.read_doc"),
    "ppt": Format("ppt pps pot", "legacy.read_ppt"),
    "msg": Format("msg", "legacy.read_msg"),
}
PLAIN_TEXT = frozenset({"md", "txt", "adoc", "vtt", "srt"})
"""Formats whose bytes are one document's text."""
TEXT_TABLES = frozenset({"csv", "tsv", "json", "jsonl"})
DECODED = PLAIN_TEXT | TEXT_TABLES | {"html", "bib", "ics", "vcf", "rst", "tex", "org", "ipynb"}
"""Formats whose readers take text; those of others take bytes."""
_BINARY = frozenset(
    ["parquet", "pdf", "docx", "doc", "pptx", "ppt", "xlsx", "xls", "odt", "ods", "odp", "rtf", "epub", "msg"]
)
_BY_ENDING = {ending: name for name, format_ in FORMATS.items() for ending in format_.endings.split()}
_REFUSED = {
    "audio": ("mp3 wav m4a aac ogg oga opus flac wma aiff amr", "Transcribe it, and index the text or subtitles."),
    "video": ("mp4 mkv mov avi webm wmv m4v mpg mpeg flv 3gp", "Transcribe it, and index the subtitles (vtt, srt)."),
    "picture": (
        "png jpg jpeg gif bmp tif tiff webp heic heif avif ico svg psd",
        "Recognize its text (OCR), and index that; a scan as a PDF with text.",
    ),
    "archive": ("zip tar gz tgz bz2 xz 7z rar zst jar iso dmg", "Unpack it into the input folder."),
}
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
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADERS = re.compile(rb"(?:\d+\s*\n)?((?:[A-Za-z][A-Za-z0-9-]*:[^\n]*\n(?:[ \t][^\n]*\n)*){2,})")
_SENDER = re.compile(rb"^(?:From|Message-I[Dd]):[^\n]*(?:\n[ \t][^\n]*)*@", re.MULTILINE | re.IGNORECASE)
_MAIL_DATE = re.compile(rb"^(?:Date|Received|Message-I[Dd]|MIME-Version):", re.MULTILINE | re.IGNORECASE)


def format_of(path: str, data: bytes | None = None) -> str | None:
    """Return the format of a file by its ending and its content, `data`; None if neither tells.

    What the content says for certain counts, whatever the ending. What is only likely, as with pages and mails, counts
    where the ending is unknown or of a binary format that the content is not.
    """
    by_ending = _BY_ENDING.get(_ending(path))
    if data is None:
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


def refused_kind(path: str) -> tuple[str, str] | None:
    """Return the kind of files with this ending, and the remedy, if none of them is read."""
    ending = _ending(path)
    return next(((kind, remedy) for kind, (endings, remedy) in _REFUSED.items() if ending in endings.split()), None)


def _ending(path: str) -> str:
    return PurePosixPath(path).suffix.lower().removeprefix(".")


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
