"""The knowledge graph's map as SVG: entities where the layout put them, colored by community, the largest by name."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from urllib.parse import quote

import polars as pl

PALETTE = [
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#d4a017", "#ff7f9c", "#9c755f", "#2f6db5",
    "#8cd17d", "#a0447f", "#499894", "#d37295", "#86bcb6", "#b6992d", "#5b5ea6", "#c44e52", "#79706e", "#3b8132",
]  # fmt: skip
"""Colors that are distinct on white; more communities repeat them."""
INK, FAINT = "#1f2430", "#6b7280"
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SAFE = "/:=,;'!@$+*?-._~"  # not &: Markdown would read character references, and the XML would be broken


def document(width: float, height: float, parts: Iterable[str], scale: float = 1.0) -> str:
    """Return a picture of this size times `scale`, on white so that it can be read in the dark theme too."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' width='{width * scale:g}' "
        f"height='{height * scale:g}' font-family='Inter,Helvetica,Arial,sans-serif'>"
        f"<rect width='100%' height='100%' fill='#fff'/>{''.join(parts)}</svg>"
    )


def text(x: float, y: float, content: str, size: float = 12, color: str = INK, **more: object) -> str:
    """Return a line of text; `more` are further attributes, with underscores for hyphens."""
    written = escape(_NOT_IN_XML.sub("", content))
    attributes = "".join(f" {name.replace('_', '-')}='{value}'" for name, value in more.items())
    return f"<text x='{x:g}' y='{y:g}' font-size='{size:g}' fill='{color}'{attributes}>{written}</text>"


def in_markdown(svg: str, description: str) -> str:
    """Return the picture inline: a data URI, percent-encoded, which is a quarter shorter than base64."""
    return f"![{description}](data:image/svg+xml,{quote(svg, safe=_SAFE)})"


MAX_ENTITIES = 3500
MAX_RELATIONSHIPS = 1500
MAX_LABELS = 45
_SIZE, _MARGIN, _FOOT = 900, 40, 26
_SHOWN = 0.82  # fits, with its frame, into the UI of a laptop
_LETTER = 0.56  # mean width of a letter, in font sizes
_LONGEST_LABEL = 32


def graph_map(
    entities: pl.DataFrame, relationships: pl.DataFrame, members: pl.DataFrame, positions: pl.DataFrame
) -> str:
    """Return the map as SVG, below 100 kB whatever the size of the graph.

    Args:
        entities: id, title, degree. Of a large graph those of the highest degree are drawn.
        relationships: source_id, target_id, weight. The heaviest are drawn.
        members: community, level, entity_id; colors are those of level 0, the largest communities first.
        positions: id, x, y, from -1 to 1, of the entities to be drawn.
    """
    drawn = _drawn(entities, members, positions)
    lines = (
        relationships.sort("weight", "source_id", "target_id", descending=[True, False, False])
        .join(drawn.select(source_id="id", x1="px", y1="py"), on="source_id", maintain_order="left")
        .join(drawn.select(target_id="id", x2="px", y2="py"), on="target_id", maintain_order="left")
        .head(MAX_RELATIONSHIPS)
    )
    caption = f"{drawn.height:,} of {entities.height:,} entities, colored by their communities at level 0"
    parts = [_edges(lines), *_nodes(drawn), *_labels(drawn), text(12, _SIZE + 12, caption, 14, FAINT)]
    return document(_SIZE, _SIZE + _FOOT, parts, _SHOWN)


def _drawn(entities: pl.DataFrame, members: pl.DataFrame, positions: pl.DataFrame) -> pl.DataFrame:
    """id, title, px and py (pixels), radius, color; the highest degree first."""
    coarsest = members.filter(pl.col("level") == 0).select("community", id="entity_id")
    order = coarsest.group_by("community").len().sort("len", "community", descending=[True, False])
    colors = order.with_row_index("place").select(
        "community",
        color=(pl.col("place") % len(PALETTE)).replace_strict(dict(enumerate(PALETTE)), return_dtype=pl.String),
    )
    scale = (_SIZE - 2 * _MARGIN) / 2
    return (
        entities.select("id", "title", "degree")
        .join(positions, on="id")
        .join(coarsest, on="id", how="left")
        .join(colors, on="community", how="left")
        .sort("degree", "title", descending=[True, False])
        .head(MAX_ENTITIES)
        .with_columns(
            (_MARGIN + (pl.col("x") + 1) * scale).round(0).cast(pl.Int64).alias("px"),
            (_MARGIN + (pl.col("y") + 1) * scale).round(0).cast(pl.Int64).alias("py"),
            pl.col("color").fill_null(FAINT),
            radius=(2 + pl.col("degree").cast(pl.Float64).sqrt() * 0.8).clip(2.4, 14).round(0),
        )
    )


def _edges(lines: pl.DataFrame) -> str:
    path = "".join(f"M{x1},{y1}L{x2},{y2}" for x1, y1, x2, y2 in lines.select("x1", "y1", "x2", "y2").iter_rows())
    return f"<path d='{path}' stroke='#94a3b8' stroke-width='.7' stroke-opacity='.35' fill='none'/>"


def _nodes(drawn: pl.DataFrame) -> Iterator[str]:
    """Yield a path per color and size: each entity is a line of no length with round ends, a tenth of a circle's
    text.
    """
    # Large ones first, so that small ones lie upon them.
    for (color, radius), group in drawn.sort("radius", descending=True).group_by(
        "color", "radius", maintain_order=True
    ):
        points = "".join(f"M{x},{y}h0" for x, y in group.select("px", "py").iter_rows())
        yield (
            f"<path d='{points}' stroke='{color}' stroke-width='{2 * float(str(radius)):g}' stroke-linecap='round' "
            "stroke-opacity='.85'/>"
        )


def _labels(drawn: pl.DataFrame) -> Iterator[str]:
    """Names of the entities with the highest degree, as far as they do not lie upon each other."""
    boxes: list[tuple[float, float, float, float]] = []
    top = float(drawn["degree"].max() or 1) if drawn.height else 1.0  # type: ignore[arg-type]
    for title, degree, x, point, radius in (
        drawn.select("title", "degree", "px", "py", "radius").head(8 * MAX_LABELS).iter_rows()
    ):
        if len(boxes) == MAX_LABELS:
            return
        name = title if len(title) <= _LONGEST_LABEL else title[: _LONGEST_LABEL - 1] + "…"
        size = 12 + 8 * (degree / top) ** 0.5
        half = len(name) * size * _LETTER / 2
        middle = min(max(float(x), half + 4), _SIZE - half - 4)
        y = max(point - radius - 3, size)  # above its point
        box = (middle - half, y - size, middle + half, y + size * 0.4)
        if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes):
            continue
        boxes.append(box)
        halo = {"text_anchor": "middle", "paint_order": "stroke", "stroke": "#fff", "stroke_width": "3.5"}
        yield text(round(middle), y, name, round(size, 1), font_weight=600, stroke_linejoin="round", **halo)
