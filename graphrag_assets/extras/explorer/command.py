"""`publications explore`: the current publication as one HTML page, in the browser."""

import webbrowser
from pathlib import Path

import click

from graphrag_assets.cli.shared_options import INDEX
from graphrag_assets.cli.terminal import Console
from graphrag_assets.extras.explorer.content import Limits
from graphrag_assets.extras.explorer.page import write_page


@click.command()
@INDEX
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The page. Default: beside the index.")
@click.option("--no-open", is_flag=True, help="Only write the page.")
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    default=5000,
    show_default=True,
    help="Maximum number of entities on the map; above it, the map shows communities.",
)
def explore(path: Path | None, output: Path | None, no_open: bool, max_nodes: int) -> None:
    """Write the explorer (map, search, texts, communities and claims in one HTML page) and open it."""
    console = Console()
    page = write_page(path, output, Limits(nodes=max_nodes))
    counts = {name: shown for name, (shown, _) in page.content.rows.items()}
    console.say(
        f"{page.path}: {page.bytes / 1e6:.1f} MB, publication {page.content.publication['number']}, "
        f"{counts['entities']:,} entities, {counts['relationships']:,} relationships, "
        f"{counts['communities']:,} communities, {counts['documents']:,} documents"
    )
    for name, (shown, total) in page.content.left_out.items():
        what = "texts" if name == "text_units" else name
        console.say(f"Left out: {total - shown:,} of {total:,} {what}")
    if not no_open and not webbrowser.open(page.path.resolve().as_uri()):
        console.say("No browser was found. The page is a single file that opens in any browser.")
