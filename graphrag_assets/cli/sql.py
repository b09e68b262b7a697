"""`sql`: queries on the current publication, one or those of a pipe, read-only."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import click
import duckdb
import polars as pl
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from graphrag_assets.cli.shared_options import INDEX
from graphrag_assets.cli.terminal import Console, write
from graphrag_assets.errors import GraphRAGError, StoreError
from graphrag_assets.store.publication_reader import CurrentPublication, Reader, check_text

MAX_ROWS = 200
"""Rows shown of a table; CSV and JSON have all rows, and every value in full."""
_MIN_WIDTH = 4


class _Queries(click.Command):
    """Takes a query that begins with a comment, and so with two hyphens, for a query."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f" {arg}" if arg.startswith("--") and "\n" in arg else arg for arg in args])


@click.command(cls=_Queries)
@click.argument("query", required=False)
@INDEX
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "csv", "json")),
    help="How results are printed. Default: a table on a terminal, CSV elsewhere.",
)
def sql(query: str | None, path: Path | None, form: str | None) -> None:
    """Run QUERY, or the queries from standard input, on the current publication, read-only.

    Without a query, the duckdb command opens it where it is installed.
    """
    reader = CurrentPublication(path).reader()
    if query is None and sys.stdin.isatty():
        succeeded = _start_shell(reader.path)
    else:
        form = form or ("table" if sys.stdout.isatty() else "csv")
        succeeded = _run_all(reader, sys.stdin.read() if query is None else query, form)
    if not succeeded:
        sys.exit(1)


def _start_shell(path: Path) -> bool:
    if command := shutil.which("duckdb"):
        return subprocess.run([command, "-readonly", str(path)]).returncode == 0
    print(f'Give a query (`sql "FROM entities"`), or install DuckDB\'s shell and open it: duckdb -readonly {path}')
    return False


def _run_all(reader: Reader, text: str, form: str) -> bool:
    """Run the queries in turn up to the first that fails; whether all succeeded."""
    try:
        check_text(text)
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


def print_frame(frame: pl.DataFrame, form: str) -> None:
    """Print the frame as a table, CSV or JSON; nested values are JSON in CSV."""
    if form == "csv":
        nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
        write(frame.with_columns(pl.col(nested).map_elements(_as_json, pl.String)).write_csv())
    elif form == "json":
        write(frame.write_json() + "\n")
    else:
        _print_table(frame)


def _as_json(value: object) -> str:
    return json.dumps(value.to_list() if isinstance(value, pl.Series) else value, ensure_ascii=False, default=str)


def _print_table(frame: pl.DataFrame) -> None:
    console = Console()
    rows = [[_in_a_line(value) for value in row] for row in frame.head(MAX_ROWS).iter_rows()]
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
    if frame.height > MAX_ROWS:
        count += f", {MAX_ROWS} shown; --format csv gives all"
    console.print(count, style="dim", highlight=False)


def _fitting(widths: list[int], room: int) -> list[int]:
    """The widths with the largest ones cut, so that they fit with a frame of three characters for each column."""
    room -= 3 * len(widths)
    most = next((most for most in range(room, _MIN_WIDTH, -1) if sum(min(w, most) for w in widths) <= room), _MIN_WIDTH)
    return [min(width, most) for width in widths]


def _in_a_line(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split("\n"))
