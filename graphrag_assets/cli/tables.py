"""Tables on the terminal that never wrap names."""

from rich import box
from rich.measure import Measurement
from rich.table import Table

from graphrag_assets.cli.terminal import Console


def table_of(*names: str, title: str | None = None) -> Table:
    """A table with columns of names."""
    table = Table(title=title)
    for name in names:
        table.add_column(name, no_wrap=True)
    return table


def add_numbers(table: Table, *headings: str) -> None:
    """Add columns of numbers, right-aligned."""
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """Print the table: without a frame where that saves space, wider than the terminal where its names need it."""
    if _width(table) > console.width:
        table.box, table.pad_edge, table.show_edge = box.SIMPLE_HEAD, False, False
    Console(width=max(console.width, _width(table))).print(table)


def _width(table: Table) -> int:
    wide = Console(width=10_000)
    return Measurement.get(wide, wide.options, table).maximum
