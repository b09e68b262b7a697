"""Tables: rows of csv, tsv, json, json lines and BibTeX files to documents; others are in `binary_tables`."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_assets.reading.chats import json_chats
from graphrag_assets.reading.decoding import UnreadableError
from graphrag_assets.reading.document_dates import in_fields
from graphrag_assets.reading.source_records import (
    WHOLE_ROW,
    LoadOptions,
    Problem,
    Record,
    clean,
    filled,
    plain,
    shortened,
)
from graphrag_assets.text.entities import unescape

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
_SEPARATOR_LINE = re.compile(r"\"?sep=([,;\t|])\"?[ \t]*\n", re.IGNORECASE)
_DELIMITERS = ",;\t|"
_SAMPLE, _SAMPLE_LINES = 20_000, 50
_SINGLE_QUOTES = re.compile(r"(?:^|[,;\t|])'[^'\n]*[,;\t|][^'\n]*'(?=[,;\t|\n])", re.MULTILINE)
_VALUE = re.compile(r"[-+]?\d[\d.,: /-]*%?")
_NO_HEADER = Problem(
    "the table has no header: its columns are named column_1, column_2, …",
    "Add a first line with the names of the columns.",
)
_BIB_ENTRY = re.compile(r"@(\w+)\s*[{(]\s*([^\s,{}]*)\s*,(.*?)(?=^[ \t]*@|\Z)", re.DOTALL | re.MULTILINE)
_BIB_FIELD = re.compile(
    r"(?<![\w-])([\w-]++)\s*=\s*(?:\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}|\"([^\"]*)\"|(\w+))\s*(?:,|\}|\Z)"
)
_BIB_ORDER = ("entry_type", "key", "title", "author", "year")


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


# --- rows to documents ----------------------------------------------------------------------------------


def table_records(table: Table, options: LoadOptions) -> Iterator[Record | Problem]:
    """Yield a document, or a problem, for each row.

    In a table without the text column, the text of a row is its columns and values, and its title is in the column that
    is most like a name. Names of columns may differ in case.
    """
    if not table.rows:
        yield Problem("the file has no rows", "Delete it, or add documents to it.")
        return
    rows = [row for row in table.rows if not isinstance(row, Problem)]
    column = _column_like(options.text_column, table.columns)
    title_column = _column_like(options.title_column, table.columns)
    if column == WHOLE_ROW or column not in table.columns:
        if column != WHOLE_ROW and len(rows) > _MAX_WHOLE_ROWS:
            yield _too_many_whole_rows(table.columns, column, len(rows))
            return
        column = WHOLE_ROW
        if title_column not in (*table.columns, WHOLE_ROW):
            title_column = _name_column(table.columns, rows) or title_column
    id_column = _column_like(options.id_column, table.columns)
    options = replace(options, text_column=column, title_column=title_column, id_column=id_column)
    rows_by_key: dict[str, int] = {}
    for row in table.rows:
        if isinstance(row, Problem):
            yield row
            continue
        try:
            item = _record(*row, options)
        except RecursionError:
            item = Problem("the row's values are nested too deeply", "Flatten them.", row[0])
        if isinstance(item, Record):
            key = item.key or str(row[0])
            item = replace(
                item, text_column=column, title_column=title_column if title_column in table.columns else None
            )
            if (first := rows_by_key.setdefault(key, row[0])) != row[0]:
                error = f"the {id_column} {shortened(key)!r} is already used by row {first}"
                item = Problem(error, f"Give each row its own {id_column}, or leave the column out.", row[0])
        yield item


def _record(number: int, values: dict[str, Any], options: LoadOptions) -> Record | Problem:
    column = options.text_column
    title = _unescaped(_name(values.get(options.title_column)))
    key = _scalar(values.get(options.id_column))
    roles = (column, options.title_column, options.id_column)
    others = plain({name: one for name, one in values.items() if name not in roles or isinstance(one, dict)})
    date = in_fields(others, options.date_fields)
    if column == WHOLE_ROW:
        cells = {name: text for name, value in values.items() if (text := _cell(value))}
        if not cells:
            return Problem("the row is empty", "Fill it in, or delete it.", number)
        parts = [f"{name}: {text}" for name, text in cells.items()]
        text = " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts)
        return Record(text, title and " ".join(title.split()), number, key, filled(others), date=date)
    value = values.get(column)
    if isinstance(value, (dict, list, bytes)):
        error = f"column {column!r} holds a {type(value).__name__}, not text"
        return Problem(error, "Make it a string.", number)
    body = _unescaped(_scalar(value))
    if body is None:
        return Problem(f"no text in column {column!r}", "Fill it in, or delete the row.", number)
    return Record(body, title, number, key, others, date=date)


def _column_like(name: str, columns: list[str]) -> str:
    """Return the column of this name, else the one that differs in case only, else the name."""
    return name if name in columns else next((one for one in columns if one.casefold() == name.casefold()), name)


def _too_many_whole_rows(columns: list[str], column: str, n_rows: int) -> Problem:
    names = ", ".join(shortened(name) for name in columns[:20]) + (", …" if len(columns) > 20 else "")
    return Problem(
        f"{n_rows:,} rows without a column {column!r}; the columns are: {names}",
        f"Name the column that holds the text in GRAPHRAG_TEXT_COLUMN, such as notes*.csv=body, or set it to "
        f"PATTERN={WHOLE_ROW} to index each row as its columns and values.",
    )


def _name_column(columns: list[str], rows: list[tuple[int, dict[str, Any]]]) -> str | None:
    """Return the column whose values name the rows: by its own name, else the first of short, distinct texts."""
    scalars = {name: [text for _, row in rows if (text := _name(row.get(name)))] for name in columns}
    by_name = [(rank, n) for n, name in enumerate(columns) if scalars[name] and (rank := _name_rank(name)) is not None]
    if by_name:
        return columns[min(by_name)[1]]
    for column, values in scalars.items():
        texts = [text for text in values if len(text) <= 80 and any(map(str.isalpha, text))]
        if rows and len(texts) == len(values) and len(set(texts)) >= _DISTINCT_SHARE * len(rows):
            return column
    return None


def _name_rank(column: str) -> int | None:
    """Return how like a name the values of a column are by its own name, 0 the most; None if not at all."""
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).casefold())
    return next((rank for rank, word in enumerate(_NAME_WORDS) if words and words[-1] == word), None)


def _cell(value: Any) -> str:
    """Return a cell as text on one line: lists and objects as their values, with their names."""
    value = plain(value)
    if isinstance(value, dict):
        value = ", ".join(f"{name}: {text}" for name, one in value.items() if (text := _cell(one)))
    elif isinstance(value, list):
        value = ("; " if any(isinstance(one, dict) for one in value) else ", ").join(filter(None, map(_cell, value)))
    return " ".join((_unescaped(str(value)) or "").split()) if value is not None else ""


def _scalar(value: Any) -> str | None:
    """Return a cell as text, None if it is empty."""
    value = plain(value)
    text = "" if value is None or isinstance(value, (dict, list)) else str(value)
    return text if text.strip() else None


def _name(value: Any) -> str | None:
    """Return a cell as a title; of an object its first text, as in `{"name": {"common": "Sweden"}}`."""
    texts = [text for text in value.values() if isinstance(text, str)] if isinstance(value, dict) else []
    return texts[0] if texts else _scalar(value)


def _unescaped(text: str | None) -> str | None:
    """Return a text without HTML entities, which exports of web pages and databases have; None if nothing is left."""
    text = clean(unescape(text)) if text else None
    return text if text and text.strip() else None


# --- CSV and TSV ----------------------------------------------------------------------------------------


def read_delimited(text: str, file_format: str, options: LoadOptions) -> Iterator[Record | Problem]:
    """Yield the documents of a csv or tsv file, and a problem if it has no header.

    The delimiter is the one that parts most lines into as many fields. Lines before the header, which have fewer, are a
    caption or comments.

    Raises:
        UnreadableError: it is none, or has too many lines or rows.
    """
    _limit_lines(text)
    n_before = 0
    if hint := _SEPARATOR_LINE.match(text):  # as Excel writes it
        delimiters, text, n_before = hint[1], text[hint.end() :], 1
    else:
        delimiters = "\t" if file_format == "tsv" and "\t" in text else _DELIMITERS
    sample = [line for line in text[:_SAMPLE].split("\n")[:_SAMPLE_LINES] if line.strip()]
    delimiter = max(delimiters, key=lambda mark: _agreement(sample, mark))
    n_lines, n_usual = _agreement(sample, delimiter)
    quote = "'" if _SINGLE_QUOTES.search(text[:_SAMPLE]) and '"' not in text[:_SAMPLE] else '"'
    records = csv_records(text, delimiter, quote)
    header = next(records, None)
    while isinstance(header, tuple) and len(header[1]) < n_usual:
        is_caption = len(header[1]) == 1 and n_lines > 1 and 2 * n_lines >= len(sample)
        if not is_caption and not header[1][0].startswith("#"):
            break
        header = next(records, None)
    if isinstance(header, Problem):
        raise UnreadableError(f"the header cannot be read: {header.error}", header.hint)
    names = header[1] if header else []
    columns, rows = distinct(names), enumerate(records, start=1)
    if header and _is_row(names):
        yield _NO_HEADER
        columns = [f"column_{number}" for number in range(1, len(names) + 1)]
        rows = enumerate((header, *records), start=1)
    table = Table(columns)
    for number, record in rows:
        if isinstance(record, Problem):
            table.add(replace(record, row_number=number))
        elif any(record[1][len(columns) :]):
            error = f"line {record[0] + n_before} has {len(record[1])} fields, the header has {len(columns)}"
            remedy = (
                f"Put fields that hold a {delimiter!r} or a line break in double quotes, "
                'and write a double quote inside such a field as "".'
            )
            table.add(Problem(error, remedy, number))
        else:
            padded = record[1] + [""] * (len(columns) - len(record[1]))
            table.add((number, dict(zip(columns, padded, strict=False))))
    yield from table_records(table, options)


def _limit_lines(text: str) -> None:
    if text.count("\n") > _MAX_LINES:
        raise UnreadableError(f"the file has more than {_MAX_LINES:,} lines", "Split it into several files.")


def _agreement(lines: list[str], delimiter: str) -> tuple[int, int]:
    """Return how many lines have the usual number of fields, if that is more than one, and that number."""
    fields = (_csv_line(line, delimiter) for line in lines)
    several = Counter(len(line) for line in fields if isinstance(line, list) and len(line) > 1).most_common(1)
    return (several[0][1], several[0][0]) if several else (0, 0)


def _is_row(fields: list[str]) -> bool:
    """Whether the first line of a table is a row: it has numbers or dates, but for years that follow each other."""
    values = [text for text in map(str.strip, fields) if _VALUE.fullmatch(text)]
    years = len(values) > 1 and all(re.fullmatch(r"(?:1[5-9]|20)\d\d", value) for value in values)
    return bool(values) and len(fields) > 1 and not (years and sorted(values) == values)


def csv_records(text: str, delimiter: str, quote: str = '"') -> Iterator[tuple[int, list[str]] | Problem]:
    """Yield the line where each record begins, and its fields.

    After mismatched quotes, each line that they run over is read by itself, so that one quote costs one line.
    """
    csv.field_size_limit(2**31 - 1)  # for the process; the default is 131,072 characters
    lines = [line + "\n" for line in text.removesuffix("\n").split("\n")] if text else []
    begin = 0
    while begin < len(lines):
        rest = (lines[i] for i in range(begin, len(lines)))
        reader = csv.reader(rest, delimiter=delimiter, quotechar=quote, strict=True)
        n_read = 0
        try:
            for fields in reader:
                if fields:
                    yield begin + n_read + 1, fields
                n_read = reader.line_num
            return
        except csv.Error as error:
            first, last = begin + n_read + 1, begin + reader.line_num
            for number in range(first, max(first + 1, last)):
                cells = _csv_line(lines[number - 1], delimiter)
                if isinstance(cells, list):
                    yield from [(number, cells)] if cells else []
                else:
                    yield Problem(
                        f"the quotes in line {number} do not match ({cells or error})",
                        'Write a double quote inside a field as "" and put the field in double quotes.',
                    )
            begin = max(first, last - 1)


def _csv_line(line: str, delimiter: str) -> list[str] | csv.Error | None:
    """Return the fields of a record on one line; None if a quote is open at its end."""
    reader = csv.reader([line, '"\n'], delimiter=delimiter, strict=True)
    try:
        fields = next(reader)
    except csv.Error as error:
        return error
    return fields if reader.line_num == 1 else None


def distinct(names: list[str]) -> list[str]:
    """Return column names with a number after the second of a name, so that no column hides another."""
    counts = Counter[str]()
    result = []
    for name in (name.strip() for name in names):
        counts[name] += 1
        result.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return result


# --- JSON, JSON lines, BibTeX ------------------------------------------------------------------


def _json_table(value: Any, column: str) -> Table:
    """Return the objects of a JSON value: a list, the only list of objects in an object, or the object.

    The rows of a list have the other fields of its object, too. Where those are more than the list, as the text of an
    article is beside its comments, the object is the one row.
    """
    if isinstance(value, dict) and column not in value:
        lists = [name for name, item in value.items() if isinstance(item, list) and item and isinstance(item[0], dict)]
        name = "documents" if isinstance(value.get("documents"), list) else lists[0] if len(lists) == 1 else None
        others = {key: item for key, item in value.items() if key != name}
        if name and (name == "documents" or len(str(others)) <= len(str(value[name]))):
            rows = value[name]
            names = {key for row in rows if isinstance(row, dict) for key in row}
            outer = {f"{name} {key}" if key in names else key: item for key, item in others.items()}
            value = [{**row, **outer} if isinstance(row, dict) else row for row in rows]
    return _objects(enumerate(value if isinstance(value, list) else [value], start=1))


def read_json(
    text: str, file_format: str, options: LoadOptions, slack: Mapping[str, str] | None
) -> Iterator[Record | Problem]:
    """Yield the documents of a json or jsonl file: chats, or rows. `slack` as for `json_chats`.

    Raises:
        UnreadableError: it has too many lines or rows.
    """
    value = parse_json(text) if file_format == "json" else None
    if value is None or isinstance(value, Problem):
        _limit_lines(text)
        lines = [(number, parse_json(line)) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        if value and not all(isinstance(one, dict) for _, one in lines):
            yield value
            return
        value, table = [one for _, one in lines], _objects(lines)
        is_damaged = any(isinstance(one, Problem) for one in value)  # the table names each damaged line
    else:
        table, is_damaged = _json_table(value, options.text_column), False
    chats = [] if is_damaged else json_chats(value, slack)
    yield from chats or table_records(table, options)


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


def _objects(values: Iterable[tuple[int, Any]]) -> Table:
    kinds = {str: "a string", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
    columns: dict[str, None] = {}
    table = Table()
    for number, value in values:
        if isinstance(value, dict):
            columns.update(dict.fromkeys(value))
            table.add((number, value))
        elif isinstance(value, Problem):
            table.add(Problem(value.error.replace(" at line 1,", " at"), value.hint, number))
        else:
            error = f"a document must be a JSON object, not {kinds.get(type(value), 'null')}"
            table.add(Problem(error, 'Write it as {"text": "…"}.', number))
    table.columns = list(columns)
    return table


def read_bibliography(text: str, options: LoadOptions) -> Iterator[Record | Problem]:
    """Yield a document for each entry of a BibTeX file."""
    table, columns = Table(), dict.fromkeys(_BIB_ORDER)
    for kind, key, body in _BIB_ENTRY.findall(text):
        if kind.lower() not in ("comment", "preamble", "string"):
            fields = {name.lower(): braced or quoted or bare for name, braced, quoted, bare in _BIB_FIELD.findall(body)}
            values = {name: " ".join(re.sub(r"[{}]", "", value).split()) for name, value in fields.items()}
            values |= {"entry_type": kind.lower(), "key": key}
            columns |= dict.fromkeys(sorted(values))
            table.add((len(table.rows) + 1, {name: values[name] for name in columns if name in values}))
    table.columns = list(columns)
    yield from table_records(table, replace(options, text_column=WHOLE_ROW))
