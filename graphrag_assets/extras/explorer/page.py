"""The page's file: the template of `static/` filled with the bundle and the content."""

import base64
import gzip
import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

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
    """The path of an index's page: beside graphrag.duckdb."""
    return (index.parent if index.is_file() else index) / PAGE_NAME


def render(content: Content) -> bytes:
    """The page. The content is compressed data, never part of the markup.

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
    """The hash of a source for a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _write(path: Path, html: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name != PAGE_NAME or not (path.parent / STABLE_NAME).exists():
        path.write_bytes(html)
        return
    with replacing(path) as draft:
        draft.write_bytes(html)
