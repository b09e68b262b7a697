"""`publications` (`list`, `diff`, `rollback`): list the kept publications, compare them, switch between them."""

import click
from rich.text import Text

from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.settings import Settings
from graphrag_assets.store.index_files import publication_file
from graphrag_assets.store.publications import (
    KeptPublication,
    comparison_sql,
    count_changes,
    counts_in_words,
    list_publications,
    resolve,
    roll_back,
)


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
def diff(before: str | None, after: str | None, sql: bool) -> None:
    """Count what changed from publication BEFORE to AFTER; default: the last two.

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
    counts = count_changes(*paths)
    console.say(f"{_name(publications[older])} → {_name(publications[newer])}")
    for what in counts["what"].unique(maintain_order=True):
        console.print(Text.assemble((f"{what.capitalize()}: ", "bold"), counts_in_words(counts, what)), soft_wrap=True)
    console.print(
        Text("Every change with its values before and after: `graphrag-assets publications diff --sql`", style="dim"),
        soft_wrap=True,
    )


def _name(publication: KeptPublication) -> str:
    current = ", current" if publication.is_current else ""
    return f"Publication {publication.number} ({publication.published_at:%Y-%m-%d %H:%M} UTC{current})"
