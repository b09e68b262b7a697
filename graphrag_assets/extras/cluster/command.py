"""`graphrag-assets doctor cluster`."""

import sys

import click
from rich.text import Text

from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.indexing.index import Index


@click.command()
def cluster() -> None:
    """Say what this machine lacks to be one of several that index together; status 1 if it lacks anything."""
    from graphrag_assets.extras.cluster.check import check_machine  # imports Dagster

    console = Console()
    with console.status("Looking at the cluster"):
        findings = list(check_machine(Index.from_environment()))
    table = table_of("", "what", "found")
    for one in findings:
        table.add_row("missing" if one.remedy else "ok", one.what, Text(one.found))
    print_table(console, table)
    lacking = [one for one in findings if one.remedy]
    for one in lacking:
        console.say(f"{one.what}: {one.remedy}")
    if lacking:
        sys.exit(1)
