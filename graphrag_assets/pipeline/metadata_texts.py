"""What a text unit has from the row or mail of its document: metadata before its text as one line, correspondents."""

import json
import re
from collections.abc import Sequence
from typing import Any

import polars as pl

_LONGEST = 200  # characters of a value
_OF_MESSAGES = ("from", "to")
"""Columns that are shown unasked where a row has both: who says it to whom."""
_ADDRESS = re.compile(r'(?:"[^"]*"|<[^>]*>|[^",;<])+')
_NOT_OF_NAME = re.compile(r"<[^>]*>|\([^()]*\)")
_LAST_FIRST = re.compile(r"([\w'’-]+), (\w[\w .'’-]*)")


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


def correspondents(raw_data: pl.Series) -> pl.Series:
    """The names of sender and receivers of mails, one a line; empty for other rows, which have no address there."""
    names = [_names_of(json.loads(row)) if row and '"from"' in row and "@" in row else "" for row in raw_data]
    return pl.Series("correspondents", names, dtype=pl.String)


def _names_of(mail: dict[str, Any]) -> str:
    """The names that stand before addresses.

    >>> _names_of({"from": "Ada Lund (Sales) <ada@example.org>", "to": '"Voss, Ben" <ben@example.org>, c@example.org'})
    'Ada Lund\\nBen Voss'
    """
    headers = [str(mail.get(name) or "") for name in (*_OF_MESSAGES, "cc")]
    if not any("@" in header for header in headers):
        return ""
    parts = (_NOT_OF_NAME.sub(" ", part) for header in headers for part in _ADDRESS.findall(header))
    names = (_LAST_FIRST.sub(r"\2 \1", " ".join(part.split()).strip("\"' ")) for part in parts)
    return "\n".join(dict.fromkeys(name for name in names if name[:1].isalpha() and not set("@:") & set(name)))


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(_as_text(one) for one in value)
    elif isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
