"""Charts of an index: how many neighbours entities have, how large communities are, what models have cost."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import polars as pl

from graphrag_assets.pictures.svg import FAINT, PALETTE, bar, document, text

_WIDTH, _PANEL, _PLOT = 640, 120, 70
MOST_DAYS = 31


def degree_distribution(degrees: pl.Series) -> str:
    """How many entities have how many neighbours."""
    return _histograms([(f"{len(degrees):,} entities by number of neighbours", degrees)])


def community_sizes(communities: pl.DataFrame) -> str:
    """How many communities of each level have how many members.

    Args:
        communities: level, size.
    """
    levels = communities.sort("level").partition_by("level", maintain_order=True)
    return _histograms(
        [
            (f"level {of_level['level'][0]}: {of_level.height:,} communities by number of members", of_level["size"])
            for of_level in levels
        ]
    )


def spending(usage: pl.DataFrame) -> str:
    """What models were paid for by day and task: dollars, or tokens where no price is known.

    Args:
        usage: day (date), task, cost_usd, tokens; the last days are drawn.
    """
    priced = bool(usage["cost_usd"].sum())
    value, unit = ("cost_usd", "US dollars") if priced else ("tokens", "tokens")
    days = usage["day"].unique().sort().tail(MOST_DAYS)
    kept = usage.filter(pl.col("day").is_in(days.implode()))
    tasks = kept.group_by("task").agg(pl.col(value).sum()).sort(value, "task", descending=[True, False])["task"]
    colours = {task: PALETTE[place % len(PALETTE)] for place, task in enumerate(tasks)}
    amounts = {(day, task): amount for day, task, amount in kept.select("day", "task", value).iter_rows()}
    totals = [sum(amounts.get((day, task), 0) for task in tasks) for day in days]
    step, top, height = min(90.0, (_WIDTH - 190) / max(len(days), 1)), max([*totals, 1e-12]), 200.0
    parts = [text(12, 20, f"{unit} by day and task", 13)]
    for place, (day, total) in enumerate(zip(days, totals, strict=True)):
        heights = [amounts.get((day, task), 0) / top * height for task in tasks]
        x = 16 + place * step
        for task, part, end in zip(tasks, heights, accumulate(heights), strict=True):
            if part:
                parts.append(
                    bar(x, 250 - end, step * 0.8, part, colours[task], f"{task}: {_amount(amounts[day, task], priced)}")
                )
        if step > 36 or place % max(len(days) // 6, 1) == 0:
            parts.append(text(x, 266, f"{day:%d %b}", 11, FAINT))
        if step > 36:
            parts.append(text(x, 245 - sum(heights), _amount(total, priced), 11))
    for place, (task, colour) in enumerate(list(colours.items())[:12]):
        parts += [bar(_WIDTH - 165, 40 + 18 * place, 11, 11, colour), text(_WIDTH - 148, 50 + 18 * place, task, 11)]
    return document(_WIDTH, 278, parts)


def _amount(total: float, priced: bool) -> str:
    return f"${total:,.2f}" if priced and total >= 0.01 else f"${total:.4f}" if priced else f"{total:,.0f}"


def _histograms(panels: Sequence[tuple[str, pl.Series]]) -> str:
    """A histogram over powers of two per panel, one below the other, all with the same bins."""
    largest = max((int(str(values.max() or 0)) for _, values in panels), default=0)
    edges = [0, 1, 2] if any((values == 0).any() for _, values in panels) else [1, 2]
    while edges[-1] < largest:
        edges.append(edges[-1] * 2)
    parts = [
        part
        for place, (title, values) in enumerate(panels)
        for part in _histogram(title, values, edges, place * _PANEL, PALETTE[place % len(PALETTE)])
    ]
    return document(_WIDTH, max(len(panels), 1) * _PANEL + 4, parts)


def _histogram(title: str, values: pl.Series, edges: Sequence[int], top: float, colour: str) -> Iterator[str]:
    """Bars of how many values lie above the edge before and up to each edge."""
    counts = [
        int(values.is_between(before + 1, edge).sum())
        for before, edge in zip([edges[0] - 1, *edges[:-1]], edges, strict=True)
    ]
    highest, step, base = max([*counts, 1]), (_WIDTH - 24) / len(edges), top + 24 + _PLOT
    yield text(12, top + 16, title, 13)
    for place, (count, edge) in enumerate(zip(counts, edges, strict=True)):
        x, height = 12 + place * step, (_PLOT - 14) * count / highest
        yield bar(x, base - height, step * 0.86, height, colour)
        if count:
            yield text(x + step * 0.43, base - height - 3, f"{count:,}", 11, text_anchor="middle")
        first = edges[place - 1] + 1 if place else edge
        name = f"{edge}" if first == edge else f"{first}–{edge}"
        yield text(x + step * 0.43, base + 13, name, 10.5, FAINT, text_anchor="middle")
