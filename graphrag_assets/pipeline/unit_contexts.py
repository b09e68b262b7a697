"""Where a text unit stands: headings, page, sheet and time; and metadata and correspondents of its document.

A passage often refers with "it" to something that only a title or heading names. So the title of the document and the
headings above a text unit are its context. It is searched, embedded and shown with the text, but is not part of it:
quotes and character spans refer to the text alone.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import date
from itertools import groupby
from typing import Any

import polars as pl

from graphrag_assets.reading.markdown import Heading, headings, plain_title, tables

SEPARATOR = " › "
_MAX_PART = 200  # characters of a title or heading
_MAX_PATH = 400  # characters of several; the title and the innermost heading always stay


class Outline:
    """The headings of a text, and which of them are in force where."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._paths: list[tuple[Heading, ...]] = []  # from each heading on: its parents and itself
        path: tuple[Heading, ...] = ()
        for heading in headings(text):
            path = (*(outer for outer in path if outer.level < heading.level), heading)
            self._starts.append(heading.start)
            self._paths.append(path)
        self._tables = tables(text)

    def columns(self, start: int) -> str:
        """Return the names of the columns of the table whose rows character `start` stands in; empty if in none."""
        return next((table.header for table in self._tables if table.start < start < table.end), "")

    def within(self, start: int, end: int) -> list[str]:
        """Return the headings that begin from character `start` on and before `end`."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return [path[-1].title for path in self._paths[first:last]]

    def path(self, start: int) -> list[str]:
        """Return the headings in force at character `start`, outermost first; of a heading that begins there, its
        parents.
        """
        place = bisect_right(self._starts, start) - 1
        path = self._paths[place] if place >= 0 else ()
        if path and path[-1].start == start:
            path = path[:-1]
        return [heading.title for heading in path]


def joined(title: str, path: list[str]) -> str:
    """Title and headings as one line; of long paths, the middle is left out.

    A first heading that repeats the title is left out too.

    >>> joined("The cable", ["The Cable", "1866"])
    'The cable › 1866'
    """
    if path and plain_title(title).casefold() == path[0].casefold():
        path = path[1:]
    parts = [_shortened(part) for part, _ in groupby([" ".join(title.split()), *path]) if part]
    while len(parts) > 2 and len(SEPARATOR.join(parts)) > _MAX_PATH:
        del parts[1]
    return SEPARATOR.join(parts)


def _shortened(part: str) -> str:
    return part if len(part) <= _MAX_PART else part[: _MAX_PART - 1].rstrip() + "…"


def with_contexts(documents: pl.DataFrame, text_units: pl.DataFrame) -> pl.DataFrame:
    """Return `text_units` with context, headings, page (integer), sheet and time: those in force where each begins.

    A context is the title of the document and the headings above, the metadata of the document in parentheses and,
    where a text unit begins within a table, the names of its columns. The headings are those above and in the text
    unit, led by the title of its document; each once, in order.

    Args:
        documents: id, text, title (null: it has none), metadata, places.
        text_units: document_id, start_char, end_char.
    """
    rows = documents.select("id", "text", pl.col("title").fill_null(""), "metadata").iter_rows()
    described = {id_: (Outline(text), title, metadata) for id_, text, title, metadata in rows}
    contexts, names_of_units = [], []
    for document, start, end in text_units.select("document_id", "start_char", "end_char").iter_rows():
        outline, title, metadata = described[document]
        path = outline.path(start)
        parts = (joined(title, path), f"({metadata})" if metadata else "", outline.columns(start))
        contexts.append(" ".join(part for part in parts if part))
        names = (" ".join(title.split()), *path, *outline.within(start, end))
        names_of_units.append(list(dict.fromkeys(_shortened(name) for name in names if name)))
    return _with_places(documents, text_units).with_columns(
        pl.Series("headings", names_of_units, dtype=pl.List(pl.String)),
        pl.Series("context", contexts, dtype=pl.String),
    )


def place_line(path: str, text: str, document_date: date | None = None) -> str:
    """One line that says where a text unit stands: title › headings; date. Empty if nothing is known.

    Args:
        path: `headings` of a `TextUnit`; those that stand in the text itself are left out.
    """
    parts = path.split(SEPARATOR) if path else []
    inside = {_shortened(heading.title) for heading in headings(text)}
    while parts and parts[-1] in inside:
        parts.pop()
    line = joined(parts[0], parts[1:]) if parts else ""
    return "; ".join(part for part in (line, document_date.isoformat() if document_date else "") if part)


_LONGEST = 200  # characters of a value
_OF_MESSAGES = ("from", "to")
"""Columns that are shown unasked where a row has both: who says it to whom."""
_ADDRESS = re.compile(r'(?:"[^"]*"|<[^>]*>|[^",;<])+')
_NOT_OF_NAME = re.compile(r"<[^>]*>|\([^()]*\)")
_LAST_FIRST = re.compile(r"([\w'’-]+), (\w[\w .'’-]*)")


def metadata_text(raw_data: str | None, columns: Sequence[str]) -> str:
    """Return the named columns of a row that have a value, in the order of `columns`; of mails, sender and receivers,
    too.

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
    texts = [metadata_text(row, columns) if columns or (row and '"from"' in row) else "" for row in raw_data]
    return pl.Series("metadata", texts, dtype=pl.String)


def correspondents(raw_data: pl.Series) -> pl.Series:
    """Return names of sender and receivers of mails, one a line; empty for other rows, which have no address there."""
    names = [_names_of(json.loads(row)) if row and '"from"' in row and "@" in row else "" for row in raw_data]
    return pl.Series("correspondents", names, dtype=pl.String)


def _names_of(mail: dict[str, Any]) -> str:
    """Return the names that stand before addresses.

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


_KINDS = {"page": ("page", "slide"), "sheet": ("sheet",), "time": ("time",)}


def _with_places(documents: pl.DataFrame, text_units: pl.DataFrame) -> pl.DataFrame:
    places = (
        documents.select("places", document_id="id")
        .explode("places", keep_nulls=False, empty_as_null=False)
        .unnest("places")
        .sort("start_char", maintain_order=True)
    )
    placed = text_units.with_row_index("row").sort("start_char")
    for column, kinds in _KINDS.items():
        of_kind = places.filter(pl.col("kind").is_in(kinds)).select(
            "document_id", "start_char", pl.col("value").alias(column)
        )
        placed = placed.join_asof(of_kind, on="start_char", by="document_id", check_sortedness=False)
    return placed.sort("row").drop("row").with_columns(pl.col("page").cast(pl.Int64))
