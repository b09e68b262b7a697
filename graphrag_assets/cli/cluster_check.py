"""`cluster-check`: what this machine lacks to be one of several that index together."""

from rich.text import Text

from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.defs.cluster_check import check_machine
from graphrag_assets.indexing.index import Index


def run_cluster_check() -> bool:
    """Print a line per check, then what to do about those that failed; whether all is well."""
    console = Console()
    with console.status("Looking at the cluster"):
        findings = list(check_machine(Index.from_environment()))
    table = table_of("", "what", "found")
    for one in findings:
        table.add_row("missing" if one.remedy else "ok", one.what, Text(one.found))
    print_table(console, table)
    lacking = [one for one in findings if one.remedy]
    for one in lacking:
        console.print(Text(f"{one.what}: {one.remedy}"), soft_wrap=True)
    return not lacking
