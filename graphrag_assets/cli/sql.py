"""`sql`: queries on the current publication, one or those of a pipe, read-only."""

import csv
import io
import json
import sys
from pathlib import Path

import click
import duckdb
import polars as pl
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from graphrag_assets.cli.terminal import INDEX, Console, width_of, write
from graphrag_assets.errors import StoreError
from graphrag_assets.store.publication_reader import CurrentPublication, Texts, check_text
from graphrag_assets.store.schema import literal

MAX_ROWS = 200
"""Rows shown of a table; CSV and JSON have all rows, and every value in full."""
_MIN_READABLE = 13  # characters of a column with its frame
_FRACTIONS = frozenset({"float", "double"})
_INTEGERS = ("tinyint", "smallint", "integer", "bigint", "hugeint")
_NUMERIC = frozenset({*_FRACTIONS, *_INTEGERS, *(f"u{kind}" for kind in _INTEGERS), "decimal", "bignum"})


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
@click.option(
    "--table",
    "files",
    multiple=True,
    metavar="NAME=FILE",
    help="A CSV, JSON or Parquet file to query as a table; may be repeated.",
)
def sql(query: str | None, path: Path | None, form: str | None, files: tuple[str, ...]) -> None:
    """Run QUERY, or the queries from standard input, on the current publication, read-only."""
    tables = dict(map(_read, files))
    reader = CurrentPublication(path).reader()
    if query is None and sys.stdin.isatty():
        raise click.UsageError(f"Give a query, or open DuckDB's shell: duckdb -readonly {reader.path}")
    form = form or ("table" if sys.stdout.isatty() else "csv")
    for statement in _statements(sys.stdin.read() if query is None else query):
        print_texts(reader.texts(statement, tables, form == "json"), form)


def _statements(text: str) -> list[str]:
    check_text(text)
    try:
        return [statement.query.strip() for statement in duckdb.extract_statements(text)]
    except duckdb.Error as error:
        raise StoreError(f"Cannot read the query: {error}") from error


def _read(table: str) -> tuple[str, pl.DataFrame]:
    """Read a file of the user's, given as name=file."""
    name, _, file = table.partition("=")
    if not (name and file):
        raise click.BadParameter(f"{table!r} is not name=file", param_hint="--table")
    try:
        with duckdb.connect() as connection:
            return name, pl.DataFrame(connection.sql(f"FROM {literal(file)}"))
    except duckdb.Error as error:
        raise click.BadParameter(f"cannot read {file}: {error}", param_hint="--table") from error


def print_texts(result: Texts, form: str) -> None:
    """Print a result as a table, CSV or JSON."""
    if form == "csv":
        output = io.StringIO()
        csv.writer(output, lineterminator="\n").writerows([result.columns, *result.rows])
        write(output.getvalue())
    elif form == "json":
        names = [json.dumps(name) for name in result.columns]
        rows = [
            ",".join(f"{name}:{_standard(value)}" for name, value in zip(names, row, strict=True))
            for row in result.rows
        ]
        write("[" + ",".join(f"{{{row}}}" for row in rows) + "]\n")
    else:
        _print_table(result)


def _standard(value: str | None) -> str:
    """DuckDB's JSON without NaN and Infinity, which JSON does not have."""
    if value is None:
        return "null"
    if "NaN" not in value and "Infinity" not in value:
        return value
    return json.dumps(json.loads(value, parse_constant=lambda _: None), ensure_ascii=False)


def _print_table(result: Texts) -> None:
    console, table = Console(), Table()
    rows = [
        [_in_a_line(value, kind in _FRACTIONS) for value, kind in zip(row, result.types, strict=True)]
        for row in result.rows[:MAX_ROWS]
    ]
    for name, kind in zip(result.columns, result.types, strict=True):
        table.add_column(Text(name), justify="right" if kind in _NUMERIC else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    if rows and width_of(table) > console.width < _MIN_READABLE * len(result.columns):
        _print_records(console, result.columns, rows)
    else:
        console.print(table)
    count = f"{len(result.rows):,} row{'s' if len(result.rows) != 1 else ''}"
    if len(result.rows) > MAX_ROWS:
        count += f", {MAX_ROWS} shown; --format csv gives all"
    console.print(count, style="dim", highlight=False)


def _print_records(console: Console, names: list[str], rows: list[list[str]]) -> None:
    """Print each column of a row on a line of its own: side by side they would be too narrow to read."""
    width = max(map(cell_len, names))
    for place, row in enumerate(rows, 1):
        console.rule(f"row {place}", align="left", style="dim", characters="─")
        for name, value in zip(names, row, strict=True):
            console.print(Text(f"{name:<{width}}  {value}"), no_wrap=True, overflow="ellipsis")


def _in_a_line(value: str | None, is_fraction: bool) -> str:
    return "" if value is None else f"{float(value):.6g}" if is_fraction else " ".join(value.split("\n"))
