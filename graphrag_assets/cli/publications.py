"""`publications` (`list`, `diff`, `rollback`): list the kept publications, compare them, switch between them."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
import polars as pl
from rich.text import Text

from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.settings import Settings
from graphrag_assets.store.index_files import publication_file
from graphrag_assets.store.publications import (
    KeptPublication,
    compare,
    comparison_sql,
    counts_in_words,
    list_publications,
    resolve,
    roll_back,
)

_QUOTED_CHARACTERS = 60
_TOLD = ("source", "title", "type", "level", "size", "n_tokens", "degree", "frequency", "weight", "rank", "description")
"""Columns that a line tells the changes of."""
_OF_ONE = ("source", "type", "level", "size")
"""Columns that a line tells of a row that was added or removed."""
_RANKED = {"entities": "degree", "relationships": "weight", "communities": "size", "reports": "rank"}
"""Kinds of rows but documents, with the column of their importance."""
_SIGNS = {"added": "+", "born": "+", "written": "+", "removed": "−", "died": "−"}


@click.command()
def list_() -> None:
    """List the publications kept for comparison and rollback."""
    console, folder = Console(), Settings.load().index_folder
    rows = list_publications(folder)
    if not rows:
        console.say(f"Nothing is published in {folder} yet. Run `graphrag-assets index`.")
        return
    table = table_of("number", "made (UTC)", numbers=("documents", "entities", "communities", "MB"))
    table.add_column()
    for one in rows:
        counts = (f"{count:,}" for count in (one.documents, one.entities, one.communities))
        mark = "current" if one.is_current else ""
        table.add_row(str(one.number), f"{one.published_at:%Y-%m-%d %H:%M}", *counts, f"{one.megabytes:.1f}", mark)
    print_table(console, table)


@click.command()
@click.argument("publication")
def rollback(publication: str) -> None:
    """Make PUBLICATION the current one: a number, or previous, newest, oldest."""
    console = Console()
    number, is_another = roll_back(Settings.load().index_folder, publication)
    if not is_another:
        console.say(f"Publication {number} is the current one already.")
        return
    console.say(
        f"Readers see publication {number} from their next question on, until something new is published. "
        "The working database and the documents are unchanged."
    )


@click.command()
@click.argument("before", required=False)
@click.argument("after", required=False)
@click.option("--sql", is_flag=True, help="Print SQL for the DuckDB shell that creates views with one row per change.")
@click.option("--examples", default=5, show_default=True, help="Number of changes shown per kind.")
def diff(before: str | None, after: str | None, sql: bool, examples: int) -> None:
    """Show what changed from publication BEFORE to AFTER; default: the last two.

    Numbers, or: current, previous, newest, oldest.
    """
    console, folder = Console(), Settings.load().index_folder
    newer = resolve(folder, after or "newest")
    publications = {one.number: one for one in list_publications(folder)}
    earlier = [number for number in publications if number < newer]
    if before is None and not earlier:
        raise click.UsageError("There is only one publication so far; a second one is made when something changes.")
    older = resolve(folder, before) if before else earlier[-1]
    paths = publication_file(folder, older), publication_file(folder, newer)
    if sql:
        click.echo(comparison_sql(*paths), nl=False)
        return
    frames = compare(*paths)
    console.say(f"{_name(publications[older])} → {_name(publications[newer])}")
    counts = frames["change_counts"]
    for what, lines in _examples(frames).items():
        console.print(Text.assemble((f"{what.capitalize()}: ", "bold"), counts_in_words(counts, what)), soft_wrap=True)
        for line in lines[:examples]:
            console.say(f"  {line}")
        if len(lines) > examples:
            console.print(Text(f"  … and {len(lines) - examples} more", style="dim"))
    console.print(
        Text("Every change with its values before and after: `graphrag-assets publications diff --sql`", style="dim"),
        soft_wrap=True,
    )


def _name(publication: KeptPublication) -> str:
    current = ", current" if publication.is_current else ""
    return f"Publication {publication.number} ({publication.published_at:%Y-%m-%d %H:%M} UTC{current})"


def _examples(frames: dict[str, pl.DataFrame]) -> dict[str, list[str]]:
    """Return a line for each change; of documents by title, else the most important ones first."""
    lines = {"documents": [_line(row) for row in frames["changed_documents"].sort("change", "title").to_dicts()]}
    for name, importance in _RANKED.items():
        lines[name] = [_line(row) for row in _ranked(frames[f"changed_{name}"], importance)]
    return lines


def _ranked(frame: pl.DataFrame, importance: str) -> Sequence[dict]:
    """Return added and removed rows before changed ones; each sorted by importance, before or after."""
    changed = pl.col("change").is_in(["changed", "rewritten"])
    greatest = pl.max_horizontal(f"{importance}_before", f"{importance}_after")
    return frame.sort(changed, greatest.neg(), "title", "change", nulls_last=True).to_dicts()


def _line(row: Mapping[str, Any]) -> str:
    """Return a change: its title, with what is known of a new or removed row, or with what differs."""
    told = list[str]()
    for name in _TOLD:
        values = [row.get(f"{name}_before"), row.get(f"{name}_after")]
        texts = [_short(value) for value in values if value not in (None, "")]
        if len(texts) == 1 and name in _OF_ONE:
            told.append(f"{name} {texts[0]}")
        elif len(texts) == 2 and values[0] != values[1]:
            told.append(f"{name} {texts[0]} → {texts[1]}")
    about = f": {'; '.join(told)}" if told else ""
    return f"{_SIGNS.get(row['change'], '~')} {row['title']}{about} ({row['change']})"


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    text = str(value)
    return text if len(text) <= _QUOTED_CHARACTERS else f"{text[: _QUOTED_CHARACTERS - 1]}…"
