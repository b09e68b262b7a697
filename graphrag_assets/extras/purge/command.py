"""`publications purge`: remove the content of deleted documents, and report what was removed."""

import click

from graphrag_assets.assets.index import Index
from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.extras.purge.purge import purge as purge_index


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--shared-ledger", is_flag=True, help="Purge a ledger set by GRAPHRAG_LEDGER_URL too.")
def purge(dry_run: bool, shared_ledger: bool) -> None:
    """Purge deleted documents and versions of documents from the ledger, old publications and free space."""
    console, index = Console(), Index.from_environment()
    removed = purge_index(index, dry_run, shared_ledger)
    table = table_of("place", "what", numbers=["number"], title="would be removed" if dry_run else "removed")
    for place, what, number in removed:
        table.add_row(place, what, f"{number:,}")
    print_table(console, table)
    if index.settings.ledger_url and not shared_ledger:
        console.say(
            "The ledger of GRAPHRAG_LEDGER_URL is not purged: it may serve other indexes too. Give --shared-ledger if "
            "only this index uses it."
        )
    console.say("Dagster's own storage is not purged: docs/dagster.md says how to.")
