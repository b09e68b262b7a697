"""`publications` (`list`, `diff`, `rollback`): list the kept publications, compare them, switch between them."""

from collections.abc import Callable, Sequence

import click
import polars as pl
from rich.text import Text

from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_files import publication_file
from graphrag_assets.store.publications import (
    KeptPublication,
    compare,
    comparison_sql,
    counts_in_words,
    list_publications,
    resolve,
    roll_back,
)

_QUOTED_CHARACTERS = 90
_SIGNS = {"added": "+", "born": "+", "written": "+", "removed": "−", "died": "−"}


@click.command()
def list_() -> None:
    """List the publications kept for comparison and rollback."""
    console, folder = Console(), Settings.load().index_folder
    found = list_publications(folder)
    if not found:
        console.say(f"Nothing is published in {folder} yet. Run `graphrag-assets index`.")
        return
    table = table_of("number", "made (UTC)", numbers=("documents", "entities", "communities", "MB"))
    table.add_column()
    for one in found:
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
    kept = {one.number: one for one in list_publications(folder)}
    earlier = [number for number in kept if number < newer]
    if before is None and not earlier:
        raise click.UsageError("There is only one publication so far; a second one is made when something changes.")
    older = resolve(folder, before) if before else earlier[-1]
    paths = publication_file(folder, older), publication_file(folder, newer)
    if sql:
        click.echo(comparison_sql(*paths), nl=False)
        return
    frames = compare(*paths)
    console.say(f"{_name(kept[older])} → {_name(kept[newer])}")
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
    """A line for each change; of documents by title, else the most important ones first."""
    documents = frames["changed_documents"].sort("change", "title").iter_rows(named=True)
    lines = {"documents": [_document(row) for row in documents]}
    for name, importance, line in _RANKED:
        lines[name] = [line(row) for row in _ranked(frames[f"changed_{name}"], importance)]
    return lines


def _ranked(frame: pl.DataFrame, importance: str) -> Sequence[dict]:
    """Added and removed rows before changed ones; each sorted by importance, before or after."""
    changed = pl.col("change").is_in(["changed", "rewritten"])
    greatest = pl.max_horizontal(f"{importance}_before", f"{importance}_after")
    return frame.sort(changed, greatest.neg(), "title", "change", nulls_last=True).to_dicts()


def _line(row: dict, more: str = "") -> str:
    return f"{_SIGNS.get(row['change'], '~')} {row['title']}{f': {more}' if more else ''} ({row['change']})"


def _document(row: dict) -> str:
    before, after = row["source_before"], row["source_after"]
    if row["change"] == "moved":
        return _line(row, f"{before} → {after}")
    tokens = f", {row['n_tokens_before']:,} → {row['n_tokens_after']:,} tokens" if row["change"] == "edited" else ""
    return _line(row, f"{after or before}{tokens}")


def _entity(row: dict) -> str:
    if row["change"] != "changed":
        return _line(row, row["type_after"] or row["type_before"])
    changes = [
        f"{name} {row[f'{name}_before']} → {row[f'{name}_after']}"
        for name in ("title", "type", "degree", "frequency")
        if row[f"{name}_before"] != row[f"{name}_after"]
    ]
    return _line(row, "; ".join([*changes, *_new_text(row)]))


def _relationship(row: dict) -> str:
    if row["change"] != "changed":
        return _line(row)
    changed = row["weight_before"] != row["weight_after"]
    changes = [f"weight {row['weight_before']:.2f} → {row['weight_after']:.2f}"] if changed else []
    return _line(row, "; ".join([*changes, *_new_text(row)]))


def _new_text(row: dict) -> list[str]:
    text = row["description_after"] or ""
    if text == row["description_before"]:
        return []
    return [f"now “{text if len(text) <= _QUOTED_CHARACTERS else text[: _QUOTED_CHARACTERS - 1] + '…'}”"]


def _community(row: dict) -> str:
    match row["change"]:
        case "renamed":
            return _line(row, f"was “{row['title_before']}”")
        case "changed":
            return _line(row, f"{row['size_before']} → {row['size_after']} members")
    return _line(
        row,
        f"level {row['level_after'] if row['change'] == 'born' else row['level_before']}, "
        f"{row['size_after'] or row['size_before']} members",
    )


_RANKED: tuple[tuple[str, str, Callable[[dict], str]], ...] = (
    ("entities", "degree", _entity),
    ("relationships", "weight", _relationship),
    ("communities", "size", _community),
    ("reports", "rank", _line),
)
