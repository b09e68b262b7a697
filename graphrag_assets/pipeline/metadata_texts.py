"""Metadata that is put before the text of text units as one line: chosen columns of a row, who a message is from."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

_LONGEST = 200  # characters of a value
_OF_MESSAGES = ("from", "to")
"""Columns that are shown unasked where a row has both: who says it to whom."""


def metadata_text(raw_data: str | None, columns: Sequence[str]) -> str:
    """The named columns of a row that have a value, in the order of `columns`; of mails, sender and receivers, too.

    >>> metadata_text('{"year": 1866, "ships": ["Albany", "Medway"], "note": null}', ("ships", "year", "note"))
    'ships: Albany, Medway; year: 1866'
    >>> metadata_text('{"from": "Ada <ada@example.org>", "to": "Ben"}', ())
    'from: Ada <ada@example.org>; to: Ben'
    """
    if not raw_data:
        return ""
    row = json.loads(raw_data)
    if all(row.get(name) for name in _OF_MESSAGES):
        columns = list(dict.fromkeys([*columns, *_OF_MESSAGES]))
    values = ((name, _as_text(row.get(name))) for name in columns)
    return "; ".join(f"{name}: {value}" for name, value in values if value)


def metadata_texts(raw_data: pl.Series, columns: Sequence[str]) -> pl.Series:
    """`metadata_text` of each row; the result is named metadata."""
    shown = [metadata_text(row, columns) if columns or (row and '"from"' in row) else "" for row in raw_data]
    return pl.Series("metadata", shown, dtype=pl.String)


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(_as_text(one) for one in value)
    elif isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
