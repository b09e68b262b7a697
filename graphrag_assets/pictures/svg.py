"""The parts of an SVG picture, and how it becomes a picture in Markdown."""

import re
from collections.abc import Iterable
from html import escape
from urllib.parse import quote

PALETTE = [
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#d4a017", "#ff7f9c", "#9c755f", "#2f6db5",
    "#8cd17d", "#a0447f", "#499894", "#d37295", "#86bcb6", "#b6992d", "#5b5ea6", "#c44e52", "#79706e", "#3b8132",
]  # fmt: skip
"""Colors that are distinct on white; more communities repeat them."""
INK, FAINT = "#1f2430", "#6b7280"
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SAFE = "/:=,;'!@$+*?-._~"  # not &: Markdown would read character references, and the XML would be broken


def document(width: float, height: float, parts: Iterable[str], scale: float = 1.0) -> str:
    """A picture of this size times `scale`, on white so that it can be read in the dark theme too."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' width='{width * scale:g}' "
        f"height='{height * scale:g}' font-family='Inter,Helvetica,Arial,sans-serif'>"
        f"<rect width='100%' height='100%' fill='#fff'/>{''.join(parts)}</svg>"
    )


def text(x: float, y: float, content: str, size: float = 12, color: str = INK, **more: object) -> str:
    """A line of text; `more` are further attributes, with underscores for hyphens."""
    written = escape(_NOT_IN_XML.sub("", content))
    attributes = "".join(f" {name.replace('_', '-')}='{value}'" for name, value in more.items())
    return f"<text x='{x:g}' y='{y:g}' font-size='{size:g}' fill='{color}'{attributes}>{written}</text>"


def in_markdown(svg: str, description: str) -> str:
    """The picture inline: a data URI, percent-encoded, which is a quarter shorter than base64."""
    return f"![{description}](data:image/svg+xml,{quote(svg, safe=_SAFE)})"
