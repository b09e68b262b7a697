"""Files of a batch to the rows of `documents`, and of `index_errors` for what could not become a document."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol

import polars as pl

from graphrag_assets.errors import RefusedFileError
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.own_facts import is_facts, reading_options, with_facts
from graphrag_assets.reading.chats import SLACK_LISTS, SLACK_USERS, slack_names
from graphrag_assets.reading.decoding import UnreadableError, decode
from graphrag_assets.reading.document_dates import date_of, in_head, in_name
from graphrag_assets.reading.read_records import Converter, read_records, refusal
from graphrag_assets.reading.source_records import LoadOptions, Problem, Record, clean, shortened, too_long
from graphrag_assets.reading.tables import parse_json
from graphrag_assets.store import schema
from graphrag_assets.store.schema import polars_schema
from graphrag_assets.text.languages import NAMES, language_of
from graphrag_assets.text.words import encode

__all__ = ["DOCUMENTS", "INDEX_ERRORS", "LoadOptions", "Loaded", "SourceFile", "given_titles", "load_documents"]

DOCUMENTS = polars_schema(schema.DOCUMENTS)
INDEX_ERRORS = polars_schema(schema.INDEX_ERRORS, "first_seen")
_LONGEST_TITLE = 300  # a title goes into prompts; a text of one line may begin with "# "


class SourceFile(Protocol):
    """A file of a batch. `path` is relative to the input folder; `read` is called at most once.

    `refused`: why it is not read.
    """

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def modified(self) -> datetime | None: ...
    @property
    def refused(self) -> RefusedFileError | None: ...
    def read(self) -> bytes: ...


class Loaded(NamedTuple):
    """`documents` (columns as `DOCUMENTS`) and `errors` (as `INDEX_ERRORS`), by source and row number."""

    documents: pl.DataFrame
    errors: pl.DataFrame


def load_documents(batch: str, files: Iterable[SourceFile], options: LoadOptions, convert: Converter) -> Loaded:
    """Read the files of a batch. A bad file or row is a row of `errors`, and the others are loaded.

    A document's `id` depends on its source and its id column or row number, so it stays when the text is
    edited; `content_hash` (of title, text and raw_data) then differs. Its date is the one it states, else the one in
    the file's name; what the column `options.date_column` states without being a date is an error, too.
    """
    documents: list[dict[str, object]] = []
    errors: list[tuple[object, ...]] = []
    ids: set[str] = set()
    files = list(files)
    slack = _slack_exports(files)
    for file in files:
        folder = PurePosixPath(file.path).parent
        if str(folder) in slack and PurePosixPath(file.path).name in SLACK_LISTS:
            continue
        source = clean(file.path)
        created = file.modified.astimezone(UTC).isoformat(timespec="seconds") if file.modified else None
        items: Iterable[Record | Problem]
        if is_facts(file.path):
            items = with_facts(_read(file, reading_options(options), convert, None), options)
        else:
            items = _read(file, options, convert, slack.get(str(folder.parent)))
        for item in items:
            if isinstance(item, Problem):
                errors.append((batch, source, item.row_number, item.stage, clean(item.error), clean(item.hint)))
                continue
            stated = date_of(item.date)
            if item.date and not stated and options.date_column:
                errors.append((batch, source, item.row_number, "date", *_no_date(item.date, options.date_column)))
            title, document_id = _title(item, source), stable_id("document", source, item.key or item.row_number)
            if document_id in ids:
                errors.append((batch, source, item.row_number, "load", *_SECOND_OF_AN_ID))
                continue
            ids.add(document_id)
            metadata = json.dumps(item.metadata, sort_keys=True, ensure_ascii=False, allow_nan=False)
            raw_data = metadata if item.metadata else None
            documents.append(
                {
                    "id": document_id,
                    "batch": batch,
                    "source": source,
                    "row_number": item.row_number,
                    "title": title,
                    "text": item.text,
                    "creation_date": created,
                    "document_date": stated or in_name(source) or (None if item.row_number else in_head(item.text)),
                    "raw_data": raw_data,
                    "content_hash": stable_id("content", title, item.text, raw_data),
                    "format": item.format,
                    "encoding": item.encoding,
                    "text_column": item.text_column,
                    "title_column": item.title_column,
                    "language": item.language if item.language in NAMES else language_of(item.text),
                    "n_tokens": len(encode(item.text, options.tokenizer)),
                    "places": [place._asdict() for place in item.places],
                }
            )
    return Loaded(
        pl.DataFrame(documents, schema=DOCUMENTS).sort("source", "row_number"),
        pl.DataFrame(errors, schema=INDEX_ERRORS, orient="row").sort("source", "row_number", "error"),
    )


def _slack_exports(files: Iterable[SourceFile]) -> dict[str, dict[str, str]]:
    """Return the folders that hold an export of Slack, and the names of its users by their ids."""
    paths = {file.path for file in files}
    exports: dict[str, dict[str, str]] = {}
    for file in files:
        path = PurePosixPath(file.path)
        if path.name == SLACK_USERS and str(path.with_name("channels.json")) in paths and not file.refused:
            with suppress(OSError, UnreadableError):
                names = slack_names(parse_json(decode(file.read()).text))
                exports |= {str(path.parent): names} if names is not None else {}
    return exports


def _read(
    file: SourceFile, options: LoadOptions, convert: Converter, slack: Mapping[str, str] | None
) -> Iterator[Record | Problem]:
    if file.refused:
        yield _unread(file.refused)
        return
    if problem := refusal(file.path, file.size, options):
        yield problem
        return
    try:
        data = file.read()
    except OSError as error:
        yield _unread(error)
        return
    if not data:
        yield Problem("the file is empty", "Delete it, or add text to it.")
        return
    for item in read_records(file.path, data, options, convert, slack):
        if isinstance(item, Record) and (size := len(item.text.encode())) > options.max_document_bytes:
            yield too_long(size, options.max_document_bytes, item.row_number)
        else:
            yield item


def _unread(error: OSError) -> Problem:
    hint = getattr(error, "hint", "Check that it exists, and its permissions.")
    return Problem(f"the file cannot be read: {error.strerror or type(error).__name__}", hint)


_SECOND_OF_AN_ID = ("another document has the same id", "Rename the file, or correct its id column.")
"""Error and hint for what would be a second row with one key, which no publication may have."""


def _no_date(stated: str, column: str) -> tuple[str, str]:
    """Error and hint for a value that is no date."""
    value = clean(shortened(stated))
    return f"{column} is {value!r}, which is ambiguous or not a date", "Write it as YYYY-MM-DD, such as 1866-07-27."


def _title(record: Record, source: str) -> str:
    """Return the document's own title on one line; else the file's name, with the row's number if it has rows."""
    title = " ".join(record.title.split()) if record.title else ""
    if title:
        return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…"
    path = PurePosixPath(source)
    return path.stem if record.row_number is None else _row_name(source, record.row_number)


def _row_name(source: str, row_number: int) -> str:
    return f"{PurePosixPath(source).name} ({row_number})"


def given_titles(documents: pl.DataFrame) -> pl.Series:
    """Return the titles of documents (columns as `DOCUMENTS`); null where a file name and row number are used instead.

    The number of a row says nothing about the document's subject.
    """
    rows = documents.select("title", "source", "row_number").iter_rows()
    titles = [None if row is not None and title == _row_name(source, row) else title for title, source, row in rows]
    return pl.Series("title", titles, dtype=pl.String)
