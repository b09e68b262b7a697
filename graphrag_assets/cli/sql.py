"""`sql`: queries on the published index: one, those of a pipe, or a shell. Nothing can be written."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import duckdb
import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphrag_assets.errors import GraphRAGError, StoreError
from graphrag_assets.store.publication_reader import PublishedIndex, Reader

FORMATS = ("table", "csv", "json")
MOST_ROWS = 200
"""Rows that are shown of a table; CSV and JSON have all, and every value whole."""
_LEAST_WIDTH = 4
_PROMPT, _CONTINUED = "sql> ", "...> "
_HELP = """\
End a query with a semicolon; it may have several lines.
.tables   tables and views, with what they hold
.macros   macros, with their parameters and what they give
.help     this
.quit     leave; so does Ctrl-D
"""
_TABLES = """
SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || name AS name, rows, comment FROM (
    SELECT schema_name, table_name AS name, estimated_size AS rows, comment
    FROM duckdb_tables() WHERE database_name = 'published'
    UNION ALL
    SELECT schema_name, view_name, NULL, comment FROM duckdb_views() WHERE database_name = 'published' AND NOT internal
) ORDER BY schema_name <> 'main', name
"""
_MACROS = """
SELECT function_name || '(' || array_to_string(parameters, ', ') || ')' AS macro,
       CASE function_type WHEN 'table_macro' THEN 'table' ELSE 'value' END AS gives, comment
FROM duckdb_functions() WHERE database_name = 'published' AND NOT internal ORDER BY gives, macro
"""


def run_sql(query: str | None, path: Path | None, form: str | None) -> bool:
    """Run the query, or what is piped in, or a shell; False if a query failed.

    Args:
        form: one of `FORMATS`; default: a table on a terminal, CSV elsewhere.
    """
    reader = PublishedIndex(path).reader()
    form = form or ("table" if sys.stdout.isatty() else "csv")
    if query is None and sys.stdin.isatty():
        command = shutil.which("duckdb")
        if command and form == "table" and _opens(command, reader.path):
            return subprocess.run([command, "-readonly", str(reader.path)]).returncode == 0
        run_shell(reader, form, input)
        return True
    return _run_all(reader, sys.stdin.read() if query is None else query, form)


def run_shell(reader: Reader, form: str, ask: Callable[[str], str]) -> None:
    """A prompt until `.quit` or the end of the input. What fails is shown, and the prompt comes again.

    Args:
        ask: gives the next line, as `input` does, for a prompt; raises EOFError at the end.
    """
    with contextlib.suppress(ImportError):  # not on Windows
        import readline  # noqa: F401  (gives `input` its history and editing)

    print(f"{reader.path}, publication {reader.publication}, read-only. .help says more, .quit leaves.")
    for typed in _statements(ask):
        if typed in (".quit", ".exit"):
            return
        if typed.startswith("."):
            _print_about(reader, typed)
        else:
            _run_all(reader, typed, form)


def _statements(ask: Callable[[str], str]) -> Iterator[str]:
    """What is typed: commands that begin with a dot, and queries up to their semicolon."""
    lines: list[str] = []
    while True:
        try:
            lines.append(ask(_CONTINUED if lines else _PROMPT))
        except KeyboardInterrupt:  # forget what was begun, as shells do
            print()
            lines = []
            continue
        except EOFError:
            if lines:
                yield "\n".join(lines)
            print()
            return
        text = "\n".join(lines).strip()
        if not text or (len(lines) == 1 and text.startswith(".")) or _is_complete(text):
            lines = []
            if text:
                yield text


def _is_complete(text: str) -> bool:
    """Whether a query ends here: not where its last semicolon stands in a quotation or a comment."""
    if not text.endswith(";"):
        return False
    try:
        # Behind a semicolon that ends a query, another one can begin.
        return len(duckdb.extract_statements(f"{text} SELECT 1")) > len(duckdb.extract_statements(text))
    except duckdb.Error as error:
        return "unterminated" not in str(error)


def _run_all(reader: Reader, text: str, form: str) -> bool:
    """Run the queries one after the other up to the first that fails; whether all went well."""
    try:
        try:
            queries = [statement.query.strip() for statement in duckdb.extract_statements(text)]
        except duckdb.Error as error:
            raise StoreError(f"Cannot read the query: {error}") from error
        for query in queries:
            print_frame(reader.query(query), form)
    except KeyboardInterrupt:
        return False
    except GraphRAGError as error:
        Console(stderr=True).print(Text.assemble(("Error: ", "bold red"), str(error)), soft_wrap=True)
        return False
    return True


def _print_about(reader: Reader, command: str) -> None:
    about = {".tables": _TABLES, ".macros": _MACROS}
    if command in about:
        print_frame(reader.frame(about[command]), "table")
    else:
        print(_HELP if command == ".help" else f"There is no {command}.\n{_HELP}", end="")


def print_frame(frame: pl.DataFrame, form: str) -> None:
    """Print the frame in one of `FORMATS`; nested values are JSON in CSV."""
    if form == "csv":
        print(
            frame.with_columns(pl.col(c).map_elements(_as_json, pl.String) for c in _nested(frame)).write_csv(), end=""
        )
    elif form == "json":
        print(frame.write_json())
    else:
        _print_table(frame)


def _nested(frame: pl.DataFrame) -> list[str]:
    return [name for name, kind in frame.schema.items() if kind.is_nested()]


def _as_json(value: object) -> str:
    return json.dumps(value.to_list() if isinstance(value, pl.Series) else value, ensure_ascii=False, default=str)


def _print_table(frame: pl.DataFrame) -> None:
    console = Console()
    rows = [[_in_a_line(value) for value in row] for row in frame.head(MOST_ROWS).iter_rows()]
    columns = [[name, *(row[place] for row in rows)] for place, name in enumerate(frame.columns)]
    widths = _fitting([max(map(cell_len, column)) for column in columns], console.width - 1)
    table = Table()
    for (name, kind), width in zip(frame.schema.items(), widths, strict=True):
        justify: Literal["left", "right"] = "right" if kind.is_numeric() else "left"
        table.add_column(Text(name), justify=justify, no_wrap=True, overflow="ellipsis", width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    count = f"{frame.height:,} row{'s' if frame.height != 1 else ''}"
    if frame.height > MOST_ROWS:
        count += f", {MOST_ROWS} shown; --format csv gives all"
    console.print(count, style="dim", highlight=False)


def _fitting(widths: list[int], room: int) -> list[int]:
    """The widths with the largest ones cut, so that they fit with a frame of three characters for each column."""
    room -= 3 * len(widths)
    most = next(
        (most for most in range(room, _LEAST_WIDTH, -1) if sum(min(w, most) for w in widths) <= room), _LEAST_WIDTH
    )
    return [min(width, most) for width in widths]


def _in_a_line(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split("\n"))


def _opens(command: str, path: Path) -> bool:
    """Whether that DuckDB shell reads the file: one much older than the file's format does not."""
    probe = subprocess.run(
        [command, "-readonly", str(path), "-c", "FROM publication"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        reason = probe.stderr.strip().splitlines()
        print(f"{command} cannot open the index ({reason[0] if reason else 'no reason given'}).", file=sys.stderr)
    return probe.returncode == 0
