"""`publications purge`: remove the content of deleted documents, and report what was removed."""

import click
from rich.table import Table
from rich.text import Text

from graphrag_assets.cli.terminal import Console
from graphrag_assets.extras.purge.proof import places_of, removed_words
from graphrag_assets.extras.purge.purge import Removed, ledger_note
from graphrag_assets.extras.purge.purge import purge as purge_index
from graphrag_assets.indexing.index import Index


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--shared-ledger", is_flag=True, help="Purge a ledger set by GRAPHRAG_LEDGER_URL too.")
def purge(dry_run: bool, shared_ledger: bool) -> None:
    """Purge deleted documents and versions of documents from the ledger, old publications, logs and free space."""
    console, index = Console(), Index.from_environment()
    if note := ledger_note(index.settings, shared_ledger):
        console.say(note)
    words = [] if dry_run or not index.working.path.exists() else removed_words(index)
    if home := index.settings.dagster_home:
        from graphrag_assets.defs.dagster_home import dagster_instance
        from graphrag_assets.extras.purge.dagster_records import purge_with_history  # imports Dagster

        with dagster_instance(home) as instance:
            removed = purge_with_history(index, instance, dry_run, shared_ledger)
    else:
        removed = purge_index(index, dry_run, shared_ledger)
        console.say(
            "This index has no Dagster home, so no Dagster storage was purged. If its runs are recorded elsewhere, set "
            "DAGSTER_HOME and purge again: the records of runs contain names and titles. The sensor requests nothing "
            "twice, so a purged batch that returns unchanged is only indexed by `index`."
        )
    if not removed:
        console.say("Nothing to purge.")
        return
    console.print(_table(removed, dry_run))
    if dry_run:
        console.say("Dry run: nothing was removed.")
    if words:
        console.say(_proof(words, places_of(words, index)))


def _proof(words: list[str], places: list[str]) -> str:
    searched = f"Searched all files of the data folder for {len(words)} names and numbers of the removed texts"
    if not places:
        return f"{searched}: none was found."
    return (
        f"{searched}: some were found in {', '.join(places)}. They may be words of a model, or of files that do "
        "not belong to the index; look there."
    )


def _table(removed: list[Removed], dry_run: bool) -> Table:
    table = Table(title="would be removed" if dry_run else "removed")
    table.add_column("place", no_wrap=True)
    table.add_column("what", overflow="fold")
    for heading in ("rows", "bytes"):
        table.add_column(heading, justify="right", no_wrap=True)
    for place, what, rows, size in removed:
        table.add_row(place, Text(what), f"{rows:,}", "" if size is None else f"{size:,}")
    table.add_section()
    table.add_row("in all", "", f"{sum(r.rows for r in removed):,}", f"{sum(r.bytes or 0 for r in removed):,}")
    return table
