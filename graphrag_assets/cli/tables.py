"""Tables on the terminal that never wrap names."""

from collections.abc import Iterable

from rich import box
from rich.measure import Measurement
from rich.table import Table

from graphrag_assets.cli.terminal import Console


def table_of(*names: str, numbers: Iterable[str] = (), title: str | None = None) -> Table:
    """A table with columns of names, then of numbers, which are right-aligned."""
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
    """The width of a table that is not cut."""
    wide = Console(width=10_000)
    return Measurement.get(wide, wide.options, table).maximum
