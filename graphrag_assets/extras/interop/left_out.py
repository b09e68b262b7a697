"""Rows of an index that do not fit: left out, counted, and named in the log."""

import logging
from collections import Counter

import polars as pl

log = logging.getLogger(__name__)

Counts = Counter[tuple[str, str]]
"""Number of rows that were left out or changed, by table and reason."""

_NAMES = ("title", "source", "target", "subject_id", "id", "community")
_NAMED = 5


def fitting(frame: pl.DataFrame, fits: pl.Expr, table: str, why: str, counts: Counts) -> pl.DataFrame:
    """The rows that fit; the others are added to `counts`, and the first of them named in the log."""
    left = frame.filter(~fits.fill_null(False))
    if left.height:
        counts[table, f"{why}, left out"] += left.height
        shown = left.select(name for name in _NAMES if name in left.columns).head(_NAMED)
        names = (" ".join(str(value) for value in row if value is not None) for row in shown.iter_rows())
        more = ", …" if left.height > _NAMED else ""
        log.warning("%s: %d rows %s, left out: %s%s", table, left.height, why, ", ".join(names), more)
    return frame.filter(fits.fill_null(False))
