"""What is read from a file: its documents, and why a file or a row of it is none. No reader knows more of the index."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from fnmatch import fnmatch
from typing import Any, NamedTuple

from graphrag_assets.reading.document_dates import FIELDS

WHOLE_ROW = "*"
"""In place of a text column: the row's columns and values are the text."""
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")  # soft hyphen, zero-width space, word joiner, byte order mark

_GENERATED = re.compile(
    r"\W*(?:untitled\w*|unknown|anonymous|unspecified|.*\.\w{2,5}|microsoft \w+ - .*|powerpoint[ -]pr\w+|document ?\d*"
    r"|dokument ?\d*|slide ?\d*|folie ?\d*|title|no title|presentation ?\d*)?\W*",
    re.IGNORECASE,
)
OUT_OF_MEMORY = 3
"""Exit code of the worker after a file that needs more memory than the limit."""


@dataclass(frozen=True)
class ConversionLimits:
    """Limits of one file: seconds, and megabytes of memory (on Linux only).

    They are far above what documents take: a file that needs more is broken, or made to do harm.
    """

    seconds: float = 300.0
    memory_mb: int = 1000


@dataclass(frozen=True)
class LoadOptions:
    """How files are read.

    Attributes:
        text_column: of tables, or several for patterns of paths: `mail/*=body, *.xlsx=*, text`.
            A table without the column, or with `WHOLE_ROW`, has a document of all columns and values in each row.
        title_column, id_column: of tables.
        date_column: of tables and front matter; empty: `FIELDS`.
        text_encoding: of text files that are not UTF-8; empty: detected.
        tokenizer: tiktoken's name of the encoding.
    """

    text_column: str = "text"
    title_column: str = "title"
    id_column: str = "id"
    date_column: str = ""
    max_document_bytes: int = 10_000_000
    text_encoding: str = ""
    tokenizer: str = "o200k_base"

    @property
    def date_fields(self) -> tuple[str, ...]:
        """The columns, and fields of front matter and metadata, that may hold a document's date."""
        return (self.date_column,) if self.date_column else FIELDS

    def text_column_of(self, path: str) -> str:
        """Return the text column of the table at a path."""
        default = ""
        for entry in (entry.strip() for entry in self.text_column.split(",")):
            pattern, separator, column = entry.partition("=")
            if not separator:
                default = entry
            elif fnmatch(path, pattern.strip()) or fnmatch(path, f"*/{pattern.strip()}"):
                return column.strip()
        return default or "text"


class Place(NamedTuple):
    """Where a part of a document stands, from `start_char` of its text to the next place.

    Attributes:
        kind: page, slide, sheet, or time.
        value: the number of the page or slide, the name of the sheet, or the time.
    """

    start_char: int
    kind: str
    value: str


@dataclass(frozen=True)
class Record:
    """One document as its file tells it.

    Attributes:
        title, key: only if the file has them; `key` is the id column.
        title: None: the first heading, or the name of the file, by the format.
        metadata: in JSON's own types.
        encoding: of the file's text, if it is a text file.
        date: as the file writes it.
        language: as the file states it, ISO 639-1.
        format: as `formats` names it.
        places: in the order of `text`.
        text_column, title_column: of a table, where its rows' texts and titles are from; `WHOLE_ROW`: all columns.
    """

    text: str
    title: str | None = None
    row_number: int | None = None
    key: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    encoding: str | None = None
    date: str | None = None
    language: str | None = None
    format: str | None = None
    places: tuple[Place, ...] = ()
    text_column: str | None = None
    title_column: str | None = None


@dataclass(frozen=True)
class Problem:
    """Why a file (`row_number` None) or one row of it is not indexed, and what to do about it.

    `stage` is load, or encoding where the document is indexed all the same.
    """

    error: str
    hint: str
    row_number: int | None = None
    stage: str = "load"


PASSWORD = Problem("the file is protected by a password", "Save a copy without the password, and index that.")


NO_TEXT = Problem(
    "no text was found in the file",
    "If it holds pictures of text, recognize their text (OCR) first; save a page whose text a script writes as text.",
)


def too_long(n_bytes: int, max_bytes: int, row_number: int | None = None) -> Problem:
    """Return the problem of a document above the limit."""
    return Problem(
        f"the document has {n_bytes / 1e6:,.1f} MB, the limit is {max_bytes / 1e6:,.1f} MB",
        "Split it.",
        row_number,
    )


def shortened(text: str) -> str:
    """Return a text of at most 150 characters, for messages."""
    return text if len(text) <= 150 else text[:149] + "…"


def clean(text: str) -> str:
    """Return the text with line feeds as line ends, without soft hyphens and zero-width characters.

    U+FFFD stands for what no database takes: NUL and lone surrogates.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = _INVISIBLE.sub("", text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not empty, in JSON's own types."""
    return {name: value for name, value in plain(dict(values)).items() if value not in (None, "", [], {})}


def plain(value: Any) -> Any:
    """Return `value` in JSON's own types: dates in ISO 8601, bytes as text, no NaN, no text a database refuses."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return clean(value)
        case dict():
            return {clean(str(key)): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case bytes():
            return clean(value.decode("utf-8", "replace"))
        case datetime() | date() | time():
            return value.isoformat()
    return clean(str(value))  # decimals exactly, durations


def stated(value: str | None) -> str | None:
    """Return a property, None if it is a file name or what programs write of themselves."""
    return value.strip() if value and not _GENERATED.fullmatch(value.strip()) else None


def document(
    text: str, about: Mapping[str, Any], places: tuple[Place, ...] = (), date: str | None = None, **left_out: int
) -> Record | Problem:
    """Return the record of an office file; `about`: its properties; `left_out`: by intent, with their number."""
    if not text.strip():
        return NO_TEXT
    metadata = {name: value for name, value in about.items() if name in ("author", "subject", "keywords")}
    metadata = filled(metadata | {"left_out": {name: n for name, n in left_out.items() if n}})
    return Record(
        text, stated(about.get("title")), date=date, language=about.get("language"), metadata=metadata, places=places
    )


def in_pages(texts: Iterable[str], kind: str) -> tuple[str, tuple[Place, ...]]:
    """Return the text of pages, or of slides, and where each begins."""
    whole, places = "", []
    for number, text in enumerate(texts, start=1):
        if page := text.strip():
            whole += "\n\n" if whole else ""
            places.append(Place(len(whole), kind, str(number)))
            whole += page
    return whole, tuple(places)


def slides_record(texts: list[str], about: Mapping[str, Any]) -> Record | Problem:
    """Return the record of a presentation, given the text of each slide."""
    whole, places = in_pages(texts, "slide")
    return document(whole, about, places)
