"""Tables: rows of csv, tsv, json, json lines and Parquet files and of workbooks to documents."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from graphrag_assets.reading.decoding import UnreadableError
from graphrag_assets.reading.document_dates import in_fields
from graphrag_assets.reading.source_records import (
    WHOLE_ROW,
    LoadOptions,
    Place,
    Problem,
    Record,
    clean,
    metadata_json,
    plain,
    shortened,
)
from graphrag_assets.text.words import unescape

_JSON_HINT = "Correct the JSON: it needs double quotes, and must not have comments or trailing commas."
_MAX_ROWS = 1_000_000
_MAX_LINES = 10_000_000
_MAX_JSON = 100_000_000
"""Rows and lines of a structured file, and characters of one JSON value: small ones take many times their size."""
_MAX_WHOLE_ROWS = 20_000
"""Rows of a table without a text column that are indexed without being asked for: they are rarely prose."""
_NAME_WORDS = (
    "title", "name", "subject", "headline", "label", "titel", "bezeichnung", "nom", "titre", "nombre", "nome",
)  # fmt: skip
_DISTINCT_SHARE = 0.9
_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r"\"?sep=([,;\t|])\"?[ \t]*\n", re.IGNORECASE)
_SAMPLE, _SAMPLE_LINES, _MIN_LINES = 20_000, 50, 3
_JSON_TYPES = {str: "a string", list: "a list", bool: "a boolean", int: "a number", float: "a number"}


@dataclass
class Table:
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


# --- rows -----------------------------------------------------------------------------------------------


def table_records(table: Table, column: str, options: LoadOptions) -> Iterator[Record | Problem]:
    """Yield a document, or a problem, for each row.

    `column` holds the text. In a table without it, the text of a row is its columns and values, and its title is in the
    column that is most like a name.
    """
    rows = [row for row in table.rows if not isinstance(row, Problem)]
    column = column if column == WHOLE_ROW else _column_like(column, table.columns)
    options = replace(options, title_column=_column_like(options.title_column, table.columns))
    whole = column == WHOLE_ROW or column not in table.columns
    if not table.rows:
        yield Problem("the file has no rows", "Delete it, or add documents to it.")
    elif whole and column != WHOLE_ROW and len(rows) > _MAX_WHOLE_ROWS:
        yield _too_many_whole_rows(table.columns, column, len(rows))
    else:
        title_column = options.title_column
        if whole and title_column not in (*table.columns, WHOLE_ROW):
            title_column = _name_column(table.columns, rows) or title_column
        text_from = WHOLE_ROW if whole else column
        title_from = title_column if title_column in table.columns else None
        taken: dict[str, int] = {}
        for row in table.rows:
            if isinstance(row, Problem):
                yield row
                continue
            item = _whole_record(*row, title_column, options) if whole else _record(*row, column, options)
            if isinstance(item, Record):
                item = replace(item, text_column=text_from, title_column=title_from)
                item = _unless_taken(item, taken, options.id_column)
            yield item


def sheet_records(
    sheets: Iterable[tuple[str, list[list[str]]]], column: str, options: LoadOptions
) -> Iterator[Record | Problem]:
    """Yield a document for each row of the sheets of a workbook, given by name and cells; its number is the sheet's.

    The header is the first row that fills more than half of the columns in use. Rows above it are a caption.
    """
    for sheet, (name, cells) in enumerate(sheets, start=1):
        table, caption = _sheet(cells)
        if not table.rows and (words := " ".join([caption, *(name for name in table.columns if name)]).strip()):
            yield Record(
                words, row_number=1, key=f"{name}:{sheet}:words", places=(Place(0, "sheet", name),) if name else ()
            )
        for item in table_records(table, column, options) if table.rows else ():
            if isinstance(item, Problem):
                yield replace(item, error=f"sheet {name}: {item.error}") if name else item
                continue
            text = f"{caption}. {item.text}" if caption else item.text
            place = (Place(0, "sheet", name),) if name else ()
            yield replace(item, text=text, key=item.key or f"{name}:{item.row_number}", places=place)


def _sheet(cells: list[list[str]]) -> tuple[Table, str]:
    filled = [[clean(str(cell)).strip().removesuffix(" 00:00:00") for cell in row] for row in cells]
    width = max((sum(map(bool, row)) for row in filled), default=0)
    header = next((number for number, row in enumerate(filled) if 2 * sum(map(bool, row)) > width), 0)
    caption = " ".join(cell for row in filled[:header] for cell in row if cell)
    titles = filled[header] if filled else []
    if len(filled) > header + 1 and _is_second_header(titles, filled[header + 1]):
        above: list[str] = []
        for title in titles:  # a title that spans columns stands in the first of them
            above.append(title or (above[-1] if above else ""))
        titles = [f"{title} {below}".strip() for title, below in zip(above, filled[header + 1], strict=False)]
        header += 1
    if len(filled) == header + 1:
        return Table([title for title in titles if title]), caption
    names = _distinct([name or f"column {n}" for n, name in enumerate(titles, start=1)])
    table = Table(names)
    for number, row in enumerate(filled[header + 1 :], start=header + 2):
        if any(row):
            table.add((number, dict(zip(names, row, strict=False))))
    return table, caption


def _is_second_header(titles: list[str], below: list[str]) -> bool:
    """Whether a row parts the titles above it that span several columns."""
    gaps = [text for title, text in zip(titles[1:], below[1:], strict=False) if not title]
    alone = any(title and not text for title, text in zip(titles, below, strict=False))
    return bool(gaps) and all(gaps) and alone and not any(map(str.isdigit, "".join(below)))


def _column_like(name: str, columns: list[str]) -> str:
    """Return the column of this name, else the one that differs in case only, else the name."""
    return name if name in columns else next((one for one in columns if one.casefold() == name.casefold()), name)


def _too_many_whole_rows(columns: list[str], column: str, n_rows: int) -> Problem:
    listed = ", ".join(shortened(name) for name in columns[:20]) + (", …" if len(columns) > 20 else "")
    return Problem(
        f"{n_rows:,} rows without a column {column!r}; the columns are: {listed}",
        f"Name the column that holds the text in GRAPHRAG_TEXT_COLUMN, such as notes*.csv=body, or set it to "
        f"PATTERN={WHOLE_ROW} to index each row as its columns and values.",
    )


def _name_column(columns: list[str], rows: list[tuple[int, dict[str, Any]]]) -> str | None:
    """Return the column whose values name the rows: by its own name, else the first of short, distinct texts."""
    by_name = sorted((rank, n) for n, column in enumerate(columns) if (rank := _name_rank(column)) is not None)
    if by_name:
        return columns[by_name[0][1]]
    for column in columns:
        values = [text for _, row in rows if (text := _scalar(row.get(column)))]
        texts = [text for text in values if len(text) <= 80 and any(map(str.isalpha, text))]
        if rows and len(texts) == len(values) and len(set(texts)) >= _DISTINCT_SHARE * len(rows):
            return column
    return None


def _name_rank(column: str) -> int | None:
    """Return how like a name the values of a column are by its own name, 0 the most; None if not at all."""
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).casefold())
    return next((rank for rank, word in enumerate(_NAME_WORDS) if words and words[-1] == word), None)


def _whole_record(number: int, values: dict[str, Any], title_column: str, options: LoadOptions) -> Record | Problem:
    try:
        cells = {name: text for name, value in values.items() if (text := _cell(value))}
        title = cells.get(title_column)
        key = _scalar(values.get(options.id_column))
        others = plain({name: value for name, value in values.items() if name not in (title_column, options.id_column)})
        raw_data = metadata_json(others)
    except RecursionError:
        return Problem("the row's values are nested too deeply", "Flatten them.", number)
    if not cells:
        return Problem("the row is empty", "Fill it in, or delete it.", number)
    parts = [f"{name}: {text}" for name, text in cells.items()]
    text = " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts)
    return Record(text, title, number, key, raw_data, date=in_fields(others, options.date_fields))


def _cell(value: Any) -> str | None:
    """Return a cell as text on one line, None if it is empty."""
    value = plain(value)
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False) if value else None
    return " ".join((_unescaped(str(value)) or "").split()) or None if value is not None else None


def _unless_taken(record: Record, rows: dict[str, int], id_column: str) -> Record | Problem:
    """The record, if no other in `rows` (row number by key) has its key; it is added to them."""
    number = record.row_number or 0
    key = record.key or str(number)
    if rows.setdefault(key, number) == number:
        return record
    error = f"the {id_column} {shortened(key)!r} is already used by row {rows[key]}"
    return Problem(error, f"Give each row its own {id_column}, or leave the column out.", number)


def _record(number: int, values: dict[str, Any], column: str, options: LoadOptions) -> Record | Problem:
    value = values.get(column)
    if isinstance(value, (dict, list, bytes)):
        error = f"column {column!r} holds a {type(value).__name__}, not text"
        return Problem(error, "Make it a string.", number)
    text = _unescaped(_scalar(value))
    if text is None:
        return Problem(f"no text in column {column!r}", "Fill it in, or delete the row.", number)
    own = (column, options.title_column, options.id_column)
    try:
        others = plain({name: value for name, value in values.items() if name not in own})
        raw_data = json.dumps(others, sort_keys=True, ensure_ascii=False, allow_nan=False) if others else None
        title = _unescaped(_scalar(values.get(options.title_column)))
        key = _scalar(values.get(options.id_column))
    except RecursionError:
        return Problem("the row's values are nested too deeply", "Flatten them.", number)
    return Record(text, title, number, key, raw_data, date=in_fields(others, options.date_fields))


def _scalar(value: Any) -> str | None:
    """A cell as text, None if it is empty."""
    value = plain(value)
    text = "" if value is None or isinstance(value, (dict, list)) else str(value)
    return text if text.strip() else None


def _unescaped(text: str | None) -> str | None:
    """A text without HTML entities, which exports of web pages and databases have; None if nothing is left."""
    text = clean(unescape(text)) if text else None
    return text if text and text.strip() else None


# --- CSV and TSV ----------------------------------------------------------------------------------------


def _csv(text: str, column: str) -> Table:
    if hint := _SEPARATOR_LINE.match(text):  # as Excel writes it
        return _delimited(text[hint.end() :], hint[1], 1)
    n_preamble = _preamble(text, column)
    lines = text.split("\n", n_preamble)
    return _delimited(lines[-1], _delimiter(lines[-1].split("\n", 1)[0], column), n_preamble)


def _preamble(text: str, column: str) -> int:
    """Return the number of lines before the header: those without a delimiter, where others have several fields."""
    lines = [line for line in text[:_SAMPLE].split("\n")[:_SAMPLE_LINES] if line.strip()]
    if len(lines) < _MIN_LINES or column in re.split(r'[",;\t|]', lines[0]):
        return 0
    delimiter = _delimiter(max(lines[1:], key=lambda line: max(map(line.count, _DELIMITERS))), column)
    widths = [len(fields) - 1 if isinstance(fields := _csv_line(line, delimiter), list) else -1 for line in lines]
    usual = Counter(widths[1:]).most_common(1)[0][0]
    if usual < 1 or widths[0] or text.count('"') % 2:
        return 0
    header = next((number for number, width in enumerate(widths) if width == usual), 0)
    return text.split("\n").index(lines[header]) if header else 0


def _tsv(text: str, column: str) -> Table:
    return _delimited(text, "\t")


def _delimiter(header: str, column: str) -> str:
    """Return the delimiter that makes the text column, else the one that makes the most columns."""
    names = {delimiter: [name.strip(' "') for name in header.split(delimiter)] for delimiter in _DELIMITERS}
    return max(names, key=lambda delimiter: (column in names[delimiter], len(names[delimiter])))


def _delimited(text: str, delimiter: str, n_before: int = 0) -> Table:
    """Return the rows of a table that stands after `n_before` lines of its file."""
    records = csv_records(text, delimiter)
    header = next(records, None)
    if header is None:
        return Table()
    if isinstance(header, Problem):
        raise UnreadableError(f"the header cannot be read: {header.error}", header.hint)
    columns = _distinct(header[1])
    table = Table(columns)
    for number, record in enumerate(records, start=1):
        if isinstance(record, Problem):
            table.add(Problem(record.error, record.hint, number))
        elif len(record[1]) != len(columns) and any(record[1][len(columns) :] or [""]) | (
            len(record[1]) < len(columns)
        ):
            fields = "1 field" if len(record[1]) == 1 else f"{len(record[1])} fields"
            error = f"line {record[0] + n_before} has {fields}, the header has {len(columns)}"
            hint = f"Put fields that hold a {delimiter!r} or a line break in double quotes."
            table.add(Problem(error, hint, number))
        else:
            table.add((number, dict(zip(columns, record[1], strict=False))))
    return table


def csv_records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]] | Problem]:
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


def json_table(value: Any, column: str) -> Table:
    """Return the objects of a JSON value: of a list, of `documents` or the only list of an object, or the object."""
    if isinstance(value, dict) and column not in value:
        lists = [item for item in value.values() if isinstance(item, list) and item and isinstance(item[0], dict)]
        value = value.get("documents", lists[0] if len(lists) == 1 else value)
    return _objects(enumerate(value if isinstance(value, list) else [value], start=1))


def _jsonl(text: str, column: str) -> Table:
    lines = enumerate(text.split("\n"), start=1)
    return _objects((number, parse_json(line)) for number, line in lines if line.strip())


def json_lines(text: str) -> list[Any]:
    """Return the values of JSON lines; nothing if one of them is no object."""
    if text.count("\n") > _MAX_WHOLE_ROWS:
        return []
    values = [parse_json(line) for line in text.split("\n") if line.strip()]
    return values if all(isinstance(value, dict) for value in values) else []


def parse_json(text: str) -> Any:
    """Return the JSON value, or the problem of text that is none."""
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


def _objects(values: Any) -> Table:
    columns: dict[str, None] = {}
    table = Table()
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


def parquet_records(data: bytes, column: str, options: LoadOptions) -> list[Record | Problem]:
    """The documents of a Parquet file, which may expand to a million times its size.

    Raises:
        MemoryError: the rows do not fit into memory. Where the columns do not fit, polars ends the process.
    """
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).split("\n", 1)[0]
        return [Problem(f"not a readable Parquet file: {shortened(reason)}", "Export the file again.")]
    table = Table(frame.columns)
    try:
        table.rows.extend(enumerate(frame.iter_rows(named=True), start=1))
    except pl.exceptions.PanicException:  # Python had no memory for a value
        raise MemoryError from None
    return list(table_records(table, column, options))


_READERS: dict[str, Callable[[str, str], Table]] = {"csv": _csv, "tsv": _tsv, "jsonl": _jsonl}


def text_table(text: str, file_format: str, column: str) -> Table:
    """Return the rows of a csv, tsv or jsonl file.

    Raises:
        UnreadableError: it is none, or has too many lines or rows.
    """
    if text.count("\n") > _MAX_LINES:
        raise UnreadableError(f"the file has more than {_MAX_LINES:,} lines", "Split it into several files.")
    return _READERS[file_format](text, column)
