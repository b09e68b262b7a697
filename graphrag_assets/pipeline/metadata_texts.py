"""Metadata that is put before the text of text units: chosen columns of a structured file's row, as one line."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

_LONGEST = 200  # characters of a value


def metadata_text(raw_data: str | None, columns: Sequence[str]) -> str:
    """The named columns of a row that have a value, in the order of `columns`.

    >>> metadata_text('{"year": 1866, "ships": ["Albany", "Medway"], "note": null}', ("ships", "year", "note"))
    'ships: Albany, Medway; year: 1866'
    """
    if not columns or not raw_data:
        return ""
    row = json.loads(raw_data)
    values = ((name, _as_text(row.get(name))) for name in columns)
    return "; ".join(f"{name}: {value}" for name, value in values if value)


def metadata_texts(raw_data: pl.Series, columns: Sequence[str]) -> pl.Series:
    """`metadata_text` of each row; the result is named metadata."""
    if not columns:
        return pl.repeat("", len(raw_data), dtype=pl.String, eager=True).alias("metadata")
    return pl.Series("metadata", [metadata_text(row, columns) for row in raw_data], dtype=pl.String)


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(_as_text(one) for one in value)
    elif isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
