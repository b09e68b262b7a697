"""`retrieve`: the passages that match a question best, without an answer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from graphrag_assets.cli.shared_options import INDEX, filtered, search_options
from graphrag_assets.cli.terminal import Console, write
from graphrag_assets.query import GraphRAG
from graphrag_assets.query.passages import RANKING_METHODS

_CHARACTERS = 240  # of a passage, on the screen


@click.command()
@click.argument("question")
@click.option("--k", type=int, default=10, show_default=True, help="Number of passages.")
@click.option(
    "--method",
    type=click.Choice(RANKING_METHODS),
    default="graph",
    show_default=True,
    help="How passages are ranked. text: by words and vectors; words: BM25.",
)
@INDEX
@filtered
@click.option("--json", "as_json", is_flag=True, help="Print the passages with all columns as JSON.")
def retrieve(question: str, path: Path | None, as_json: bool, **options: Any) -> None:
    """Show the passages that match QUESTION best, with their ranks by words, by vectors and by the graph."""
    found = GraphRAG(path).retrieve(question, **search_options(**options))
    if as_json:
        write(found.write_json() + "\n")
    elif found.is_empty():
        Console(stderr=True).print("No passage contains a word of the question.")
    else:
        Console().print(_table(found))


def _table(found: pl.DataFrame) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_lines=True)
    table.add_column("#", justify="right")
    table.add_column("passage", overflow="fold")
    for row in found.iter_rows(named=True):
        table.add_row(str(row["rank"]), _passage(row))
    return table


def _passage(row: Mapping[str, Any]) -> Text:
    place = f"characters {row['start_char']}-{row['end_char']}; " if row["start_char"] is not None else ""
    by = [(name, row[f"rank_by_{name}"]) for name in ("words", "vectors", "graph")]
    ranks = ", ".join(f"{name} {rank}" for name, rank in by if rank is not None)
    text = " ".join(row["text"].split())
    shown = Text.assemble((row["document"] or "", "bold"), f"\n{row['source']}\n", place, f"score {row['score']:.3g}")
    shown.append(f"; rank by {ranks}\n" if ranks else "\n")
    if row["about"]:
        shown.append(f"found through: {', '.join(row['about'])}\n", "italic")
    return shown.append(text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS].rstrip()} …")
