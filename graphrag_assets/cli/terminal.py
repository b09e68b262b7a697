"""The terminal: everything that commands print goes through here, and none of it controls the terminal.

Titles, names and ids come from documents and models. An escape sequence in them could rewrite what the terminal shows.
"""

import contextlib
import logging
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import rich.console
from rich import box
from rich.console import ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from graphrag_assets.runtime.outgoing import printable, shown

INDEX = click.option("--index", "path", type=click.Path(path_type=Path), help="Index folder or .duckdb file.")
"""The option of commands that read an index."""


def write(text: str) -> None:
    """Print data, such as CSV: on a terminal with control characters as symbols, elsewhere as it is."""
    print(printable(text) if sys.stdout.isatty() else text, end="")


@contextlib.contextmanager
def warnings_shown() -> Iterator[None]:
    """Print warnings that no handler takes without secrets and control characters: they quote models and documents."""
    handler, before = logging.StreamHandler(), logging.lastResort
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_Shown())
    logging.lastResort = handler
    try:
        yield
    finally:
        logging.lastResort = before


class _Shown(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record))


class Console(rich.console.Console):
    """Rich's console, whose texts hold no control characters; the styles are Rich's own."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.push_render_hook(_Masking())

    def say(self, line: str) -> None:
        """Print a line of text as it is: without markup, highlights and wrapping."""
        self.print(Text(line), soft_wrap=True)


class _Masking(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Masked(renderable) for renderable in renderables]


class _Masked:
    """A renderable with control characters as symbols."""

    def __init__(self, renderable: ConsoleRenderable):
        self.renderable = renderable

    def __rich_console__(self, console: rich.console.Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield Segment(text, segment.style, segment.control)


def table_of(*names: str, numbers: Iterable[str] = (), title: str | None = None) -> Table:
    """Return a table with columns of names, then of numbers, which are right-aligned."""
    table = Table(title=title)
    for name in names:
        table.add_column(name, no_wrap=True)
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=True)
    return table


def print_table(console: Console, table: Table) -> None:
    """Print the table: without a frame where that saves space, wider than the terminal where its names need it."""
    if width_of(table) > console.width:
        table.box, table.pad_edge, table.show_edge = box.SIMPLE_HEAD, False, False
    Console(width=max(console.width, width_of(table))).print(table)


def width_of(table: Table) -> int:
    """Return the width of a table that is not cut."""
    wide = Console(width=10_000)
    return Measurement.get(wide, wide.options, table).maximum
