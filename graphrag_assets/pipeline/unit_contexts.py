"""The context of a text unit: the title of its document and the headings above it.

A passage often refers with "it" to something that only a title or heading names. The context is searched, embedded and
shown with the text, but is not part of it: quotes and character spans refer to the text alone.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby, pairwise

import polars as pl

from graphrag_assets.contracts.records import PlacedUnit
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.chunking import cut_into_parts
from graphrag_assets.pipeline.extraction import unit_errors
from graphrag_assets.reading.headings import Heading, headings, plain_title, tables

SEPARATOR = " › "
STAGE = "context"
"""Stage of the index_errors rows of contexts that could not be written."""
_HINT = "Run `graphrag-assets index` again: only failed contexts are requested. Until then the headings are used."
MAX_DOCUMENT_TOKENS = 8000
"""Longer documents are shown to the chat model in parts."""
_MAX_PART = 200  # characters of a title or heading
_MAX_PATH = 400  # characters of several; the title and the innermost heading always stay

WriteContexts = Callable[[Sequence[PlacedUnit]], Iterator[tuple[str, str | Exception]]]
"""From text units to the id of each with its written context or the error; in any order."""


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
        """The headings that begin from character `start` on and before `end`."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return [path[-1].title for path in self._paths[first:last]]

    def path(self, start: int) -> list[str]:
        """The headings in force at character `start`, outermost first; of a heading that begins there, its parents."""
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


def outlines_of(documents: pl.DataFrame) -> dict[str, Outline]:
    """The outlines of documents (id, text), by id."""
    return {id_: Outline(text) for id_, text in documents.select("id", "text").iter_rows()}


def heading_contexts(documents: pl.DataFrame, outlines: Mapping[str, Outline], text_units: pl.DataFrame) -> pl.Series:
    """The context of each text unit: the title of its document, then the headings in force where it begins.

    Metadata of the document follows in parentheses. A text unit that begins within a table has the
    names of its columns, too.

    Args:
        documents: id, title (null: it has none), metadata.
        outlines: of the documents, by id.
        text_units: document_id, start_char (null: only the title counts).
    """
    titles = {id_: title or "" for id_, title in documents.select("id", "title").iter_rows()}
    metadata = {id_: f"({text})" if text else "" for id_, text in documents.select("id", "metadata").iter_rows()}
    contexts = []
    for id_, start in text_units.select("document_id", "start_char").iter_rows():
        outline, start = outlines[id_], -1 if start is None else start
        parts = (joined(titles[id_], outline.path(start)), metadata[id_], outline.columns(start))
        contexts.append(" ".join(part for part in parts if part))
    return pl.Series("context", contexts, dtype=pl.String)


def unit_headings(documents: pl.DataFrame, outlines: Mapping[str, Outline], text_units: pl.DataFrame) -> pl.Series:
    """The headings above and in each text unit, led by the title of its document; each once, in order.

    Args:
        documents: id, title (null: it has none).
        outlines: of the documents, by id.
        text_units: document_id, start_char, end_char.
    """
    titles = {id_: " ".join((title or "").split()) for id_, title in documents.select("id", "title").iter_rows()}
    found = []
    for document, start, end in text_units.select("document_id", "start_char", "end_char").iter_rows():
        outline = outlines[document]
        names = [titles[document], *outline.path(start), *outline.within(start, end)]
        found.append(list(dict.fromkeys(_shortened(name) for name in names if name)))
    return pl.Series("headings", found, dtype=pl.List(pl.String))


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


# --- written contexts -----------------------------------------------------------------------------------


def placed_units(documents: pl.DataFrame, text_units: pl.DataFrame) -> list[PlacedUnit]:
    """The text units, each with the part of its document that its context is written from.

    A document of up to `MAX_DOCUMENT_TOKENS` is one part. The parts of a longer one are cut between text units by
    content, so an edit changes what a bounded number of contexts are written from, wherever it is.

    Args:
        documents: id, text.
        text_units: id, document_id, ordinal, start_char, end_char, text, n_tokens, context (of headings).
    """
    texts = dict(documents.select("id", "text").iter_rows())
    placed: list[PlacedUnit] = []
    for (document,), units in text_units.sort("document_id", "ordinal").group_by("document_id", maintain_order=True):
        starts = cut_into_parts(units["text"].to_list(), units["n_tokens"].to_list(), MAX_DOCUMENT_TOKENS)
        for first, end in pairwise([*starts, units.height]):
            part = units[first:end]
            text = texts[document][part["start_char"].min() : part["end_char"].max()]
            placed += [
                PlacedUnit(id_, path, text, own) for id_, path, own in part.select("id", "context", "text").rows()
            ]
    return placed


def write_contexts(
    documents: pl.DataFrame,
    text_units: pl.DataFrame,
    known: pl.DataFrame,
    write: WriteContexts,
    writer: str,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`text_units` with contexts that `write` adds to their headings, and the index_errors rows of those that failed.

    A context is a function of the part of the document, the headings and the text: while these and the writer stay,
    it is taken from `known`. A text unit whose context cannot be written keeps its headings.

    Args:
        documents: id, text.
        text_units: as the table, with contexts of headings.
        known: context_fingerprint, context.
        writer: fingerprint of `write`.
    """
    placed = placed_units(documents, text_units)
    prints = {unit.id: stable_id("context", writer, unit.document, unit.headings, unit.text) for unit in placed}
    contexts: dict[str, str] = dict(known.select("context_fingerprint", "context").iter_rows())
    new = {unit.id: unit for unit in placed if prints[unit.id] not in contexts}
    failed: list[tuple[str, str]] = []
    for unit_id, written in write(list(new.values())):
        if isinstance(written, Exception):
            failed.append((unit_id, f"{type(written).__name__}: {written}"))
        else:
            contexts[prints[unit_id]] = ": ".join(part for part in (new[unit_id].headings, written) if part)
    known_prints = [prints[id_] if prints[id_] in contexts else None for id_ in text_units["id"]]
    found = [contexts.get(prints[id_]) for id_ in text_units["id"]]
    made = text_units.with_columns(
        context=pl.coalesce(pl.Series(found, dtype=pl.String), "context"),
        context_fingerprint=pl.Series(known_prints, dtype=pl.String),
    )
    return made, unit_errors(sorted(failed), text_units, STAGE, _HINT)
