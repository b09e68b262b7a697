"""`explore`: the current publication as one HTML page, in the browser."""

import webbrowser
from pathlib import Path

from graphrag_assets.cli.terminal import Console
from graphrag_assets.explorer.content import Limits
from graphrag_assets.explorer.page import write_page


def run_explore(index: Path | None, output: Path | None, max_nodes: int, open_it: bool) -> None:
    """Write the page, print its contents and omissions, and open it in the browser.

    Raises:
        StoreError: nothing is published, or the page cannot be written.
    """
    console = Console()
    page = write_page(index, output, Limits(nodes=max_nodes))
    counts = {name: shown for name, (shown, _) in page.content.rows.items()}
    console.say(
        f"{page.path}: {page.bytes / 1e6:.1f} MB, publication {page.content.publication['number']}, "
        f"{counts['entities']:,} entities, {counts['relationships']:,} relationships, "
        f"{counts['communities']:,} communities, {counts['documents']:,} documents"
    )
    for name, (shown, total) in page.content.left_out.items():
        what = "texts" if name == "text_units" else name
        console.say(f"Left out: {total - shown:,} of {total:,} {what}")
    if open_it and not webbrowser.open(page.path.resolve().as_uri()):
        console.say("No browser was found. The page is a single file that opens in any browser.")
