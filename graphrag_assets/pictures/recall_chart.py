"""A line per method over publications, from 0 to 100."""

import polars as pl

from graphrag_assets.pictures.svg import FAINT, PALETTE, document, text

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 130, 30, 30


def recall_chart(rows: pl.DataFrame, title: str, most: int = 30) -> str:
    """The picture as SVG.

    Args:
        rows: publication, method, mean (0 to 1); of many publications the last `most` are drawn.
        title: stands above it.
    """
    publications = rows["publication"].unique().sort()[-most:].to_list()
    methods = rows["method"].unique().sort().to_list()
    x = {
        number: _LEFT + (_WIDTH - _LEFT - _RIGHT) * place / max(len(publications) - 1, 1)
        for place, number in enumerate(publications)
    }
    parts = [text(_LEFT, 18, title, 13)]
    for share in (0, 25, 50, 75, 100):
        parts.append(f"<path d='M{_LEFT} {_y(share / 100):g}H{_WIDTH - _RIGHT}' stroke='#e5e7eb'/>")
        parts.append(text(_LEFT - 6, _y(share / 100) + 4, str(share), 11, FAINT, text_anchor="end"))
    for number in publications:
        parts.append(text(x[number], _HEIGHT - 10, str(number), 11, FAINT, text_anchor="middle"))
    labels: list[float] = []
    ends: list[tuple[float, str, str]] = []
    for place, method in enumerate(methods):
        color = PALETTE[place % len(PALETTE)]
        values = dict(rows.filter(pl.col("method") == method).select("publication", "mean").iter_rows())
        points = [(x[number], _y(values[number])) for number in publications if number in values]
        if points:
            line = "L".join(f"{px:g} {py:g}" for px, py in points)
            parts.append(f"<path d='M{line}' fill='none' stroke='{color}' stroke-width='2'/>")
            parts += [f"<circle cx='{px:g}' cy='{py:g}' r='3' fill='{color}'/>" for px, py in points]
            last = next(values[number] for number in reversed(publications) if number in values)
            ends.append((points[-1][1], f"{method} {100 * last:.1f}", color))
    for end, label, color in sorted(ends):
        y = max([end + 4, *(label_y + 14 for label_y in labels[-1:])])  # labels of close lines do not overlap
        labels.append(y)
        parts.append(text(_WIDTH - _RIGHT + 10, y, label, 12, color))
    return document(_WIDTH, _HEIGHT, parts)


def _y(share: float) -> float:
    return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - share), 1)
