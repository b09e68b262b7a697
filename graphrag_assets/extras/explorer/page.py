"""The page's file: the template of `static/` filled with the bundle and the content; and the command that writes it."""

import base64
import gzip
import hashlib
import json
import webbrowser
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from graphrag_assets.cli.terminal import INDEX, Console
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.explorer.content import Content, Limits, page_content
from graphrag_assets.store.index_files import STABLE_NAME, replacing
from graphrag_assets.store.publication_reader import CurrentPublication

PAGE_NAME = "explorer.html"


@dataclass(frozen=True, slots=True)
class Page:
    """A written page: its path, size and content."""

    path: Path
    bytes: int
    content: Content


def write_page(index: Path | None = None, output: Path | None = None, limits: Limits | None = None) -> Page:
    """Write the explorer of the current publication; the page beside an index is replaced atomically.

    Args:
        index: index folder or published file; default: the index folder of the settings.
        output: the page's file; default: explorer.html beside the index.

    Raises:
        StoreError: nothing is published, or the page cannot be written.
    """
    published = CurrentPublication(index)
    output = output or page_path(published.path)
    content = page_content(published.reader(), limits)
    html = render(content)
    try:
        _write(output, html)
    except OSError as error:
        raise StoreError(f"Cannot write the explorer to {output}: {error}. Another place: --output FILE.") from error
    return Page(output, len(html), content)


def page_path(index: Path) -> Path:
    """Return the path of an index's page: beside graphrag.duckdb."""
    return (index.parent if index.is_file() else index) / PAGE_NAME


def render(content: Content) -> bytes:
    """Return the page. The content is compressed data, never part of the markup.

    The policy in its head allows only the bundle, by its hash: no other script, no request.
    """
    static = files("graphrag_assets.extras.explorer") / "static"
    script = static.joinpath("explorer.js").read_text(encoding="utf-8").strip()
    style = static.joinpath("explorer.css").read_text(encoding="utf-8").strip()
    page = Template(static.joinpath("page.html").read_text(encoding="utf-8"))
    text = json.dumps(content.as_json(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return page.substitute(
        publication=content.publication["number"],
        script_hash=_source_hash(script),
        style_hash=_source_hash(style),
        style=style,
        script=script,
        content=base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode(),
    ).encode()


def _source_hash(source: str) -> str:
    """Return the hash of a source for a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _write(path: Path, html: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name != PAGE_NAME or not (path.parent / STABLE_NAME).exists():
        path.write_bytes(html)
        return
    with replacing(path) as draft:
        draft.write_bytes(html)


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
    counts = {name: here for name, (here, _) in page.content.rows.items()}
    console.say(
        f"{page.path}: {page.bytes / 1e6:.1f} MB, publication {page.content.publication['number']}, "
        f"{counts['entities']:,} entities, {counts['relationships']:,} relationships, "
        f"{counts['communities']:,} communities, {counts['documents']:,} documents"
    )
    for name, (here, total) in page.content.left_out.items():
        what = "texts" if name == "text_units" else name
        console.say(f"Left out: {total - here:,} of {total:,} {what}")
    if not no_open and not webbrowser.open(page.path.resolve().as_uri()):
        console.say("No browser was found. The page is a single file that opens in any browser.")
