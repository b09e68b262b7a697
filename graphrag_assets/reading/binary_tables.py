"""Rows of workbooks, with calamine, and of Parquet files, with DuckDB, to documents."""

import io
import re
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

import duckdb
from python_calamine import CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

from graphrag_assets.reading.decoding import UnreadableError
from graphrag_assets.reading.source_records import (
    PASSWORD,
    LoadOptions,
    Place,
    Problem,
    Record,
    clean,
    filled,
    shortened,
)
from graphrag_assets.reading.tables import Table, distinct, table_records

_NO_VALUE = re.compile(rb"<f[^>]*(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</(?:\w+:)?c>")
_TEMPORARY = re.compile(r"(?<=['\"])[^'\"]*\.parquet(?=['\"])")  # its path, which is another one each time
_ROWS_AT_ONCE = 1000

# --- workbooks ------------------------------------------------------------------------------------------


def read_sheets(data: bytes, options: LoadOptions) -> Iterator[Record | Problem]:
    """Yield a document for each row of the visible sheets of a workbook; its number is the sheet's."""
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
    except PasswordError:
        yield PASSWORD
        return
    if n_without := _count_formulas_without_value(data):
        error = f"{n_without} formulas of the workbook have no saved values: their cells are empty"
        yield Problem(error, "Open it in a spreadsheet program, and save it again.")
    worksheets = [sheet for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    visible = [sheet.name for sheet in worksheets if sheet.visible == SheetVisibleEnum.Visible]
    left_out = filled({"hidden_sheets": len(worksheets) - len(visible) or None})
    for position, name in enumerate(visible, start=1):
        table, caption = _table(_cells(workbook, name))
        place = (Place(0, "sheet", name),) if name else ()
        if not table.rows and (words := " ".join([caption, *filter(None, table.columns)]).strip()):
            yield Record(words, row_number=1, key=f"{name}:{position}:words", places=place)
        for item in table_records(table, options) if table.rows else ():
            if isinstance(item, Problem):
                yield replace(item, error=f"sheet {name}: {item.error}") if name else item
                continue
            yield replace(
                item,
                text=f"{caption}. {item.text}" if caption else item.text,
                key=f"{name}:{item.key or item.row_number}" if len(visible) > 1 or not item.key else item.key,
                metadata=filled({**item.metadata, "left_out": left_out}) if left_out else item.metadata,
                places=place,
            )
            left_out = {}  # counted with the first row


def _count_formulas_without_value(data: bytes) -> int:
    if not data.startswith(b"PK"):
        return 0
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        parts = [name for name in package.namelist() if name.startswith("xl/worksheets/sheet")]
        return sum(len(_NO_VALUE.findall(package.read(name))) for name in parts)


def _cells(workbook: CalamineWorkbook, name: str) -> list[list[str]]:
    """Return the cells of a sheet; a merged one is repeated."""
    sheet = workbook.get_sheet_by_name(name)
    cells = [[clean(_text(value)).strip() for value in row] for row in sheet.to_python(skip_empty_area=False)]
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        for row in cells[top : bottom + 1]:
            row[left : right + 1] = [cells[top][left]] * len(row[left : right + 1])
    return cells


def _text(value: Any) -> str:
    """Return the value of a cell as a spreadsheet shows it: whole numbers without a fraction, times without seconds."""
    match value:
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case datetime():
            return value.isoformat(" ", "seconds").removesuffix(" 00:00:00").removesuffix(":00")
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("seconds").removesuffix(":00")
        case timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
    return str(value)


def _table(cells: list[list[str]]) -> tuple[Table, str]:
    """Return the table of a sheet, and its caption: the rows above the header.

    The header is the first row that fills more than half of the columns in use.
    """
    width = max((sum(map(bool, row)) for row in cells), default=0)
    header = next((number for number, row in enumerate(cells) if 2 * len({*row} - {""}) > width), 0)
    caption = " ".join(dict.fromkeys(cell for row in cells[:header] for cell in row if cell))
    titles = cells[header] if cells else []
    if len(cells) > header + 1 and _is_second_header(titles, cells[header + 1]):
        above: list[str] = []
        for title in titles:  # a title that spans columns stands in the first of them
            above.append(title or (above[-1] if above else ""))
        pairs = zip(above, cells[header + 1], strict=False)
        titles = [title if title == under else f"{title} {under}".strip() for title, under in pairs]
        header += 1
    if len(cells) == header + 1:
        return Table([title for title in titles if title]), caption
    table = Table(distinct([name or f"column {n}" for n, name in enumerate(titles, start=1)]))
    for number, row in enumerate(cells[header + 1 :], start=header + 2):
        if any(row):
            table.add((number, dict(zip(table.columns, row, strict=False))))
    return table, caption


def _is_second_header(titles: list[str], below: list[str]) -> bool:
    """Whether a row parts the titles above it that span several columns; merged ones are repeated."""
    pairs = [*zip(titles, below, strict=False)]
    spans = [number for number in range(1, len(pairs)) if titles[number] in ("", titles[number - 1])]
    parted = bool(spans) and all(below[number] and below[number] != titles[number] for number in spans)
    single = any(title and under in ("", title) for title, under in pairs)
    return parted and single and not any(map(str.isdigit, "".join(below)))


# --- Parquet --------------------------------------------------------------------------------------------


def read_parquet(data: bytes, options: LoadOptions) -> Iterator[Record | Problem]:
    """Yield the documents of a Parquet file, which may expand to a million times its size.

    Raises:
        MemoryError: the rows do not fit into memory.
    """
    table = Table()
    try:
        with tempfile.NamedTemporaryFile(suffix=".parquet") as file, duckdb.connect() as connection:
            file.write(data)
            file.flush()
            connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
            rows = connection.execute("FROM read_parquet($file)", {"file": file.name})
            table.columns = [name for name, *_ in rows.description or ()]
            while batch := rows.fetchmany(_ROWS_AT_ONCE):
                for row in batch:
                    table.add((len(table.rows) + 1, dict(zip(table.columns, row, strict=True))))
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except (duckdb.Error, UnreadableError, OSError) as error:
        reason = shortened(_TEMPORARY.sub("the file", str(error).split("\n", 1)[0]))
        yield Problem(f"not a readable Parquet file: {reason}", "Export the file again, or split it.")
        return
    yield from table_records(table, options)
