"""A file's bytes to its documents, by its format. Nothing here raises for bad input: the rest of the file is read."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from graphrag_assets.reading.chats import whatsapp_record
from graphrag_assets.reading.decoding import UnreadableError, decode
from graphrag_assets.reading.formats import DECODED, PLAIN_TEXT, TEXT_TABLES, format_of, refused_kind
from graphrag_assets.reading.source_records import (
    PASSWORD,
    LoadOptions,
    Place,
    Problem,
    Record,
    clean,
    filled,
    too_long,
)
from graphrag_assets.reading.tables import read_delimited, read_json
from graphrag_assets.reading.text_files import first_heading, subtitle_record, text_record

Converter = Callable[[bytes, str, LoadOptions], list[Record | Problem]]
"""Reads files that may expand to gigabytes or crash their library, given bytes and format."""
_CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?([\w-]+)", re.IGNORECASE)
_GENERIC = re.compile(r"\W*(?:abstract|summary|(?:table of )?contents|introduction|inhalt\w*|sommaire|índice)\W*", re.I)
_DATA_URI = (
    r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,"
    r"(?P<data>[A-Za-z0-9+/=_%\s-]{64,}?)(?=[^A-Za-z0-9+/=_%\s-]|\Z)"
)
_LINE = r"[ \t]*\n\s*"
_CODE = "[A-Za-z0-9+/]"
_BASE64 = re.compile(
    rf"{_DATA_URI}|(?<![A-Za-z0-9+/=]){_CODE}{{40,}}+(?:{_LINE}{_CODE}{{40,}}+)*+"
    rf"(?:{_LINE}{_CODE}++={{0,2}}(?=[ \t]*(?:\n|\Z)))?={{0,2}}"
)
_MIN_BASE64, _MIN_CHARACTERS = 200, 10  # long names and sequences of genes have fewer different characters


def refusal(path: str, size: int, options: LoadOptions) -> Problem | None:
    """Return why a file is not read, by its name and size; None if it is."""
    if kind := refused_kind(path):
        return _refused(*kind)
    is_text = format_of(path) in (None, *PLAIN_TEXT)
    return too_long(size, options.max_document_bytes) if is_text and size > options.max_document_bytes else None


def _refused(kind: str, remedy: str) -> Problem:
    return Problem(f"{kind} files are not indexed", remedy)


def read_records(
    path: str, data: bytes, options: LoadOptions, convert: Converter, slack: Mapping[str, str] | None = None
) -> Iterator[Record | Problem]:
    """Yield the documents of a file in its order, and what is wrong with the others.

    `slack`: names of the users of the export of Slack that the file is of, by their ids.
    """
    file_format = format_of(path, data) or "txt"
    options = replace(options, text_column=options.text_column_of(path))
    encoding = None
    items: Iterable[Record | Problem]
    try:
        if file_format == "encrypted":
            items = [PASSWORD]
        elif file_format in DECODED:
            declared = _CHARSET.search(data[:4096]) if file_format == "html" else None
            text, encoding, doubt = decode(data, options.text_encoding or (declared[1].decode() if declared else ""))
            if doubt:
                yield doubt
            items = _from_text(clean(text), file_format, options, convert, slack)
        else:
            items = convert(data, file_format, options)
        for item in items:
            if isinstance(item, Record):
                title = item.title or _title(item, file_format, path, slack if file_format == "json" else None)
                yield _without_base64(replace(item, title=title, encoding=encoding, format=file_format))
            else:
                yield item
    except UnreadableError as error:
        is_unknown = encoding is None and format_of(path) is None
        remedy = "Export it as text or PDF, or move it out of the input folder."
        yield _refused("binary", remedy) if is_unknown else error.problem


def _from_text(
    text: str,
    file_format: str,
    options: LoadOptions,
    convert: Converter,
    slack: Mapping[str, str] | None,
) -> Iterable[Record | Problem]:
    if not text.strip():
        return [Problem("the file contains only white space", "Delete it, or add text to it.")]
    if file_format in ("vtt", "srt"):
        return subtitle_record(text, file_format)
    if file_format in PLAIN_TEXT:
        chat = whatsapp_record(text) if file_format == "txt" else None
        return [chat or text_record(text, file_format, options)]
    if file_format in ("csv", "tsv"):
        return read_delimited(text, file_format, options)
    if file_format in ("json", "jsonl"):
        return read_json(text, file_format, options, slack)
    return convert(text.encode(), file_format, options)


def _title(record: Record, file_format: str, path: str, slack: Mapping[str, str] | None) -> str | None:
    """Return the title of a document that states none: the channel of a day of Slack, else the first heading."""
    if slack is not None:
        return f"{PurePosixPath(path).parent.name} {PurePosixPath(path).stem}"
    if file_format in PLAIN_TEXT | TEXT_TABLES | {"pdf"} or record.row_number:  # headings of PDFs are guesses
        return None
    heading = first_heading(record.text)
    return heading if heading and not _GENERIC.fullmatch(heading) else None


def _without_base64(record: Record) -> Record:
    """Return a record without base64 in its text and metadata: its size stands there."""
    text, places, n = _shortened(record.text, record.places)

    def shorten(value: Any) -> Any:
        nonlocal n
        match value:
            case dict():
                return {name: shorten(item) for name, item in value.items()}
            case list():
                return [shorten(item) for item in value]
            case str():
                value, _, n_values = _shortened(value, ())
                n += n_values
        return value

    metadata = shorten(record.metadata)
    if n:
        metadata = filled({**metadata, "left_out": {**metadata.get("left_out", {}), "base64": n}})
    return replace(record, text=text, places=places, metadata=metadata)


def _shortened(text: str, places: tuple[Place, ...]) -> tuple[str, tuple[Place, ...], int]:
    """Return a text with the size of base64 data in its place, where the places are then, and how many data there are.

    Base64 has more than 200 characters on one line or on long lines.
    """
    parts, position, starts, n = [], 0, [place.start_char for place in places], 0
    for data in _BASE64.finditer(text):
        code = data["data"] or data[0]
        is_mixed = code.upper() != code != code.lower() and len({*code}) > _MIN_CHARACTERS
        if data["data"] or (len(code) > _MIN_BASE64 and is_mixed):
            label = f"[{data['type'] or 'data'}, {max(1, len(code) * 3 // 4000):,} kB]"
            shift = len(data[0]) - len(label)
            starts = [
                max(data.start(), start - shift) if place.start_char > data.start() else start
                for start, place in zip(starts, places, strict=True)
            ]
            parts += [text[position : data.start()], label]
            position, n = data.end(), n + 1
    moved_places = tuple(place._replace(start_char=start) for place, start in zip(places, starts, strict=True))
    return "".join((*parts, text[position:])), moved_places, n
