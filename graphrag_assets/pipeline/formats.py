"""File formats: the bytes of one file to its documents, and to problems where a file or a row is no document.

What belongs here: parsing. Ids, hashes and frames are created in `loading`. Nothing here raises for bad input: a
problem has its remedy, and the rest of the file is read.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from pathlib import PurePosixPath
from typing import Any, Protocol

import polars as pl

from graphrag_assets.pipeline.decoding import UnreadableError, decode
from graphrag_assets.pipeline.document_dates import FIELDS, front_matter, in_fields
from graphrag_assets.text import unescape

_JSON_HINT = "Correct the JSON: it needs double quotes, and must not have comments or trailing commas."
_MAX_ROWS = 1_000_000
_MAX_LINES = 10_000_000
_MAX_JSON = 100_000_000
"""Rows and lines of a structured file, and characters of one JSON value: small ones take many times their size."""
_JSON_TYPES = {str: "a string", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
_NAMES = ("txt", "md", "csv", "tsv", "json", "jsonl", "parquet", "pdf", "docx", "pptx", "html")
_ALSO = {".text": "txt", ".markdown": "md", ".ndjson": "jsonl", ".htm": "html"}
_FORMATS = {f".{name}": name for name in _NAMES} | _ALSO
_BINARY = ("pdf", "docx", "pptx")
CONVERTED = (*_BINARY, "html")
"""Formats that are converted to Markdown by the package markitdown."""
LIMITED = (*CONVERTED, "parquet")
"""Formats of which a small file may expand to gigabytes; read by a `Converter`."""


@dataclass(frozen=True)
class LoadOptions:
    """How files are read. The columns are of structured files; `date_column` of front matter, too, empty: `FIELDS`.

    `text_encoding` is that of text files which are not UTF-8; empty: detected. `tokenizer` names tiktoken's encoding.
    """

    text_column: str = "text"
    title_column: str = "title"
    id_column: str = "id"
    date_column: str = ""
    max_document_bytes: int = 10_000_000
    text_encoding: str = ""
    tokenizer: str = "o200k_base"

    @property
    def date_fields(self) -> tuple[str, ...]:
        """The columns, and fields of front matter and metadata, that may hold a document's date."""
        return (self.date_column,) if self.date_column else FIELDS


@dataclass(frozen=True)
class Record:
    """One document as its file tells it: `title` and `key` (the id column) only if the file has them.

    `date` is the date as it is written there; `encoding` is that of the file's text, if it is a text file.
    """

    text: str
    title: str | None = None
    row_number: int | None = None
    key: str | None = None
    raw_data: str | None = None
    encoding: str | None = None
    date: str | None = None


@dataclass(frozen=True)
class Problem:
    """Why a file (`row_number` None) or one row of it is not indexed, and what to do about it."""

    error: str
    hint: str
    row_number: int | None = None


@dataclass
class _Table:
    """Rows of a structured file by number; a row that cannot be parsed is a problem."""

    columns: list[str] = field(default_factory=list)
    rows: list[tuple[int, dict[str, Any]] | Problem] = field(default_factory=list)

    def add(self, row: tuple[int, dict[str, Any]] | Problem) -> None:
        """Add a row.

        Raises:
            UnreadableError: there are too many.
        """
        if len(self.rows) == _MAX_ROWS:
            raise UnreadableError(f"the file has more than {_MAX_ROWS:,} rows", "Split it into several files.")
        self.rows.append(row)


def format_of(path: str) -> str | None:
    """The format by the file's ending, None if it is not a supported one."""
    return _FORMATS.get(PurePosixPath(path).suffix.lower())


def is_plain_text(file_format: str) -> bool:
    """Whether the file's bytes are one document's text."""
    return file_format in ("txt", "md")


def supported_formats() -> str:
    return ", ".join(_FORMATS)


class Converter(Protocol):
    """Reads files with the formats `LIMITED`, given their bytes."""

    def __call__(self, data: bytes, file_format: str) -> Record | Problem:
        """The document of a file with one of the formats `CONVERTED`, its Markdown as the text."""

    def parquet(self, data: bytes, options: LoadOptions) -> list[Record | Problem]:
        """`parquet_records` of a file."""


def read_records(path: str, data: bytes, options: LoadOptions, convert: Converter) -> Iterator[Record | Problem]:
    """The documents of a file with a supported format, in its order, and what is wrong with the others."""
    file_format = format_of(path) or "txt"
    try:
        if file_format == "parquet":
            yield from convert.parquet(data, options)
        elif file_format in _BINARY:
            yield _converted(convert(data, file_format))
        else:
            text, encoding = decode(data, options.text_encoding)
            for item in _from_text(clean(text), file_format, options, convert):
                yield replace(item, encoding=encoding) if isinstance(item, Record) else item
    except UnreadableError as error:
        yield Problem(error.error, error.hint)


def _from_text(text: str, file_format: str, options: LoadOptions, convert: Converter) -> Iterator[Record | Problem]:
    if not text.strip():
        yield Problem("the file contains only white space", "Delete it, or add text to it.")
    elif is_plain_text(file_format):
        title = _first_heading(text) if file_format == "md" else None
        yield Record(text, title, date=in_fields(front_matter(text), options.date_fields))
    elif file_format == "html":
        yield _converted(convert(text.encode(), file_format))
    elif text.count("\n") > _MAX_LINES:
        yield Problem(f"the file has more than {_MAX_LINES:,} lines", "Split it into several files.")
    else:
        yield from _records(_TABLES[file_format](text, options), options)


# --- text -----------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """`text` with line feeds as line ends, and U+FFFD for what no database takes: NUL and lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _first_heading(text: str) -> str | None:
    """The title of a Markdown text that begins with a heading of the first level."""
    line = text.lstrip().split("\n", 1)[0]
    return line[2:].strip().rstrip("#") if line.startswith("# ") else None


# --- structured files -----------------------------------------------------------------------------------


def _records(table: _Table, options: LoadOptions) -> Iterator[Record | Problem]:
    """One record a row. A column missing from the whole file is one problem, not one a row."""
    if not table.rows:
        yield Problem("the file has no rows", "Delete it, or add documents to it.")
    elif options.text_column not in table.columns:
        yield from (row for row in table.rows if isinstance(row, Problem))
        if table.columns or not any(isinstance(row, Problem) for row in table.rows):
            yield _missing_column(table.columns, options.text_column)
    else:
        rows: dict[str, int] = {}
        for row in table.rows:
            item = row if isinstance(row, Problem) else _record(*row, options)
            yield item if isinstance(item, Problem) else _unless_taken(item, rows, options.id_column)


def _unless_taken(record: Record, rows: dict[str, int], id_column: str) -> Record | Problem:
    """The record, if no other in `rows` (row number by key) has its key; it is added to them."""
    number = record.row_number or 0
    key = record.key or str(number)
    if rows.setdefault(key, number) == number:
        return record
    error = f"the {id_column} {_short(key)!r} is already used by row {rows[key]}"
    return Problem(error, f"Give each row its own {id_column}, or leave the column out.", number)


def _record(number: int, values: dict[str, Any], options: LoadOptions) -> Record | Problem:
    value = values.get(options.text_column)
    if isinstance(value, (dict, list, bytes)):
        error = f"column {options.text_column!r} holds a {type(value).__name__}, not text"
        return Problem(error, "Make it a string.", number)
    text = _unescaped(_scalar(value))
    if text is None:
        return Problem(f"no text in column {options.text_column!r}", "Fill it in, or delete the row.", number)
    own = (options.text_column, options.title_column, options.id_column)
    try:
        others = _plain({name: value for name, value in values.items() if name not in own})
        raw_data = json.dumps(others, sort_keys=True, ensure_ascii=False, allow_nan=False) if others else None
        title = _unescaped(_scalar(values.get(options.title_column)))
        key = _scalar(values.get(options.id_column))
    except RecursionError:
        return Problem("the row's values are nested too deeply", "Flatten them.", number)
    return Record(text, title, number, key, raw_data, date=in_fields(others, options.date_fields))


def _scalar(value: Any) -> str | None:
    """A cell as text, None if it is empty."""
    plain = _plain(value)
    text = "" if plain is None or isinstance(plain, (dict, list)) else str(plain)
    return text if text.strip() else None


def _unescaped(text: str | None) -> str | None:
    """A text without HTML entities, which exports of web pages and databases have; None if nothing is left."""
    text = clean(unescape(text)) if text else None
    return text if text and text.strip() else None


def _plain(value: Any) -> Any:
    """`value` in JSON's own types: dates in ISO 8601, bytes as text, no NaN, no text a database refuses."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return clean(value)
        case dict():
            return {clean(str(key)): _plain(item) for key, item in value.items()}
        case list() | tuple() | pl.Series():
            return [_plain(item) for item in value]
        case bytes():
            return clean(value.decode("utf-8", "replace"))
        case datetime() | date() | time():
            return value.isoformat()
    return clean(str(value))  # decimals exactly, durations


def _missing_column(columns: list[str], wanted: str) -> Problem:
    found = ", ".join(_short(name) for name in columns[:20]) + (", …" if len(columns) > 20 else "") or "none"
    return Problem(
        f"the column {wanted!r} is missing; found: {found}",
        f"Rename the column that holds the text to {wanted!r}, or set GRAPHRAG_TEXT_COLUMN to its name.",
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


# --- CSV and TSV ----------------------------------------------------------------------------------------


def _csv(text: str, options: LoadOptions) -> _Table:
    """Separated by commas, or by semicolons if that makes the text column: some spreadsheets save it so."""
    header = text.split("\n", 1)[0]
    by_semicolon = [name.strip(' "') for name in header.split(";")]
    return _delimited(text, ";" if options.text_column in by_semicolon and ";" in header else ",")


def _tsv(text: str, options: LoadOptions) -> _Table:
    return _delimited(text, "\t")


def _delimited(text: str, delimiter: str) -> _Table:
    records = _csv_records(text, delimiter)
    header = next(records, None)
    if header is None:
        return _Table()
    if isinstance(header, Problem):
        raise UnreadableError(f"the header cannot be read: {header.error}", header.hint)
    columns = _distinct(header[1])
    table = _Table(columns)
    for number, record in enumerate(records, start=1):
        if isinstance(record, Problem):
            table.add(Problem(record.error, record.hint, number))
        elif len(record[1]) != len(columns):
            fields = "1 field" if len(record[1]) == 1 else f"{len(record[1])} fields"
            error = f"line {record[0]} has {fields}, the header has {len(columns)}"
            hint = f"Put fields that hold a {delimiter!r} or a line break in double quotes."
            table.add(Problem(error, hint, number))
        else:
            table.add((number, dict(zip(columns, record[1], strict=True))))
    return table


def _csv_records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]] | Problem]:
    """The line where each record begins, and its fields; after mismatched quotes, continues at the next line.

    Linear: where a record of several lines fails at its last one, each line between them began within a quoted field.
    A record that begins at one of them and does not end there is in the same state on the next line, so it fails at
    the same last line; it need not be read again.
    """
    csv.field_size_limit(2**31 - 1)  # for the process; the default is 131,072 characters
    lines = [line + "\n" for line in text.removesuffix("\n").split("\n")] if text else []
    begin = 0
    while begin < len(lines):
        reader = csv.reader((lines[i] for i in range(begin, len(lines))), delimiter=delimiter, strict=True)
        read = 0
        try:
            for fields in reader:
                if fields:
                    yield begin + read + 1, fields
                read = reader.line_num
            return
        except csv.Error as error:
            first, last = begin + read + 1, begin + reader.line_num
            yield _mismatch(first, last, error)
            for number in range(first + 1, last):
                fields_or_error = _csv_line(lines[number - 1], delimiter)
                if isinstance(fields_or_error, csv.Error):
                    yield _mismatch(number, number, fields_or_error)
                elif fields_or_error is None:
                    yield _mismatch(number, last, error)
                elif fields_or_error:
                    yield number, fields_or_error
            begin = max(first, last - 1)


def _csv_line(line: str, delimiter: str) -> list[str] | csv.Error | None:
    """The fields of a record on one line; None if a quote is open at its end."""
    reader = csv.reader([line, '"\n'], delimiter=delimiter, strict=True)
    try:
        fields = next(reader)
    except csv.Error as error:
        return error
    return fields if reader.line_num == 1 else None


def _mismatch(first: int, last: int, error: csv.Error) -> Problem:
    where = f"line {first}" if first >= last else f"lines {first} to {last}"
    return Problem(
        f"the quotes in {where} do not match ({error})",
        'Write a double quote inside a field as "" and put the field in double quotes.',
    )


def _distinct(names: list[str]) -> list[str]:
    """Column names with a number after the second of a name, so that no column hides another."""
    taken: dict[str, int] = {}
    result = []
    for name in (name.strip() for name in names):
        taken[name] = taken.get(name, 0) + 1
        result.append(name if taken[name] == 1 else f"{name}_{taken[name]}")
    return result


# --- JSON, JSON lines, Parquet --------------------------------------------------------------------------


def _json(text: str, options: LoadOptions) -> _Table:
    value = _parse(text)
    if isinstance(value, Problem):
        raise UnreadableError(value.error, value.hint)
    if isinstance(value, dict) and options.text_column not in value:
        value = value.get("documents", value)
    return _objects(enumerate(value if isinstance(value, list) else [value], start=1))


def _jsonl(text: str, options: LoadOptions) -> _Table:
    lines = enumerate(text.split("\n"), start=1)
    return _objects((number, _parse(line)) for number, line in lines if line.strip())


def _parse(text: str) -> Any:
    if len(text) > _MAX_JSON:
        error = f"JSON of {len(text) / 1e6:,.0f} million characters, the limit is {_MAX_JSON / 1e6:,.0f} million"
        return Problem(error, "Write one document per line (JSON lines), or split the file.")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        return Problem(f"malformed JSON: {error.msg.removesuffix(' at')} {where}", _JSON_HINT)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        return Problem(f"JSON that cannot be read: {error}", _JSON_HINT)


def _objects(values: Any) -> _Table:
    columns: dict[str, None] = {}
    table = _Table()
    for number, value in values:
        if isinstance(value, dict):
            columns.update(dict.fromkeys(value))
            table.add((number, value))
        elif isinstance(value, Problem):
            table.add(Problem(value.error.replace(" at line 1,", " at"), value.hint, number))
        else:
            error = f"a document must be a JSON object, not {_JSON_TYPES.get(type(value), 'null')}"
            table.add(Problem(error, 'Write it as {"text": "…"}.', number))
    table.columns = list(columns)
    return table


def parquet_records(data: bytes, options: LoadOptions) -> list[Record | Problem]:
    """The documents of a Parquet file, which may expand to a million times its size.

    Raises:
        MemoryError: the rows do not fit into memory. Where the columns do not fit, polars ends the process.
    """
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).split("\n", 1)[0]
        return [Problem(f"not a readable Parquet file: {_short(reason)}", "Export the file again.")]
    table = _Table(frame.columns)
    try:
        table.rows.extend(enumerate(frame.iter_rows(named=True), start=1))
    except pl.exceptions.PanicException:  # Python had no memory for a value
        raise MemoryError from None
    return list(_records(table, options))


# --- office documents -----------------------------------------------------------------------------------


def _converted(item: Record | Problem) -> Record | Problem:
    if isinstance(item, Problem):
        return item
    text = clean(item.text)
    if not text.strip():
        return Problem("no text was found in the file", "If it is a scan, extract its text (OCR) first.")
    return replace(item, text=text, title=item.title or _first_heading(text))


def too_long(n_bytes: int, max_bytes: int, row_number: int | None = None) -> Problem:
    """The problem of a document above the limit."""
    return Problem(
        f"the document has {n_bytes / 1e6:,.1f} MB, the limit is {max_bytes / 1e6:,.1f} MB",
        "Split it, or raise GRAPHRAG_MAX_DOCUMENT_MB.",
        row_number,
    )


_TABLES: dict[str, Callable[[str, LoadOptions], _Table]] = {"csv": _csv, "tsv": _tsv, "json": _json, "jsonl": _jsonl}
