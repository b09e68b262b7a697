"""Reads publications: finds the current file, opens it read-only, switches to the next one."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl

from graphrag_assets.errors import IndexMissing, OtherVersionError, QueryError, StoreError, refuse_denied
from graphrag_assets.runtime.processes import use_threads
from graphrag_assets.store.connections import NO_EXTENSIONS, ArrowStream, interruptible, refuse_other_version
from graphrag_assets.store.index_files import STABLE_NAME, current_number, kept_publications, publication_file
from graphrag_assets.store.schema import POLARS_TYPES, literal

log = logging.getLogger(__name__)

_USE_ALL_SCHEMAS = "SET search_path = 'published.main,published.operations,published.search'"
_READING = ([duckdb.StatementType.SELECT], [duckdb.StatementType.EXPLAIN], [duckdb.StatementType.MULTI])  # PIVOT

_CONFIG: dict[str, Any] = {
    **NO_EXTENSIONS,
    "python_enable_replacements": False,  # a name in a query is a table, never a variable of the program
    "allocator_background_threads": True,  # memory of a query is returned a second later: 40 MB after thirty questions
}


_NESTED = frozenset({"list", "array", "struct", "map", "union", "variant"})


class Texts(NamedTuple):
    """A result as text."""

    columns: list[str]
    types: list[str]
    """DuckDB's names of the columns' types, in lower case, without their parameters."""
    rows: list[tuple[str | None, ...]]


@dataclass(frozen=True)
class Reader:
    """One publication, open for reading; its content never changes. Safe to share among threads.

    The file is attached, read-only, to an in-memory database of this reader. So queries can read and write nothing
    outside of the file, and other connections of the process to the same file keep their own configuration.
    """

    path: Path
    connection: duckdb.DuckDBPyConnection
    scopes: dict[str, object] = field(default_factory=dict, repr=False, compare=False)
    """Allowed rows per filter, cached by `query.scope`."""

    def query(
        self, query: str, parameters: Mapping[str, Any] | None = None, tables: Mapping[str, pl.DataFrame] | None = None
    ) -> pl.DataFrame:
        """Return the result of one SELECT, with DuckDB's types; pass values as parameters (`$name`), frames as tables.

        Raises:
            StoreError: it is another statement, or DuckDB rejects it; then the message is DuckDB's.
        """
        with self._selected(query, parameters, tables) as (cursor, result):
            for name, kind in zip(result.columns, map(str, result.types), strict=True):
                if "INTERVAL" in kind or "UNION" in kind:
                    raise StoreError(f"Column {name!r} is of type {kind}, which polars lacks: cast it to VARCHAR.")
            return interruptible(cursor, lambda: pl.DataFrame(result))

    def texts(self, query: str, tables: Mapping[str, pl.DataFrame], as_json: bool) -> Texts:
        """As `query`, with every value, of whatever type, as text that DuckDB writes.

        Args:
            as_json: JSON, also for numbers and texts; else only nested values are.
        """
        with self._selected(query, None, tables) as (cursor, result):
            types = [str(kind.id) for kind in result.types]
            texts = (
                f"to_json(#{place})::VARCHAR AS c{place}"
                if as_json or kind in _NESTED
                else f"#{place}::VARCHAR AS c{place}"
                for place, kind in enumerate(types, 1)
            )
            return Texts(result.columns, types, interruptible(cursor, result.project(", ".join(texts)).fetchall))

    @contextlib.contextmanager
    def _selected(
        self, query: str, parameters: Mapping[str, Any] | None, tables: Mapping[str, pl.DataFrame] | None
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyRelation]]:
        """Yield a connection, and what one SELECT returns, which is not executed yet."""
        check_text(query)
        with self._cursor(_USE_ALL_SCHEMAS) as cursor:
            if [statement.type for statement in cursor.extract_statements(query)] not in _READING:
                raise StoreError(f"Cannot run the query on {self.path}: it must be one SELECT statement.")
            for name, frame in (tables or {}).items():
                cursor.register(name, ArrowStream(frame))
            yield cursor, cursor.sql(query, params=dict(parameters or {}))

    def rows(self, query: str, parameters: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """As `query`, for small results: a third faster, because it is planned once, not twice.

        Types that `POLARS_TYPES` lacks, such as most nested ones, are inferred from the values.
        """
        with self._cursor() as cursor:
            rows = _fetched(cursor, query, parameters)
            schema = {name: POLARS_TYPES.get(str(kind)) for name, kind, *_ in cursor.description or ()}
            return pl.DataFrame(rows, schema, orient="row", infer_schema_length=None)

    def numbers(self, query: str, parameters: Mapping[str, Any]) -> list[int]:
        """Return the first column of a query's result: the fastest way to a list of ids."""
        with self._cursor() as cursor:
            return [row[0] for row in _fetched(cursor, query, parameters)]

    @contextlib.contextmanager
    def _cursor(self, use: str = "USE published") -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection without the state of others: one serves one thread at a time."""
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(use)
                yield cursor
        except duckdb.Error as error:
            raise StoreError(f"Cannot run the query on {self.path}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @cached_property
    def has_dates(self) -> bool:
        """Whether a document has a date."""
        return self.numbers("SELECT count(document_date) FROM documents", {}) != [0]

    @cached_property
    def embedding(self) -> tuple[str, int] | None:
        """Name of the embedding model and the vectors' dimensions; None for an index without vectors."""
        first = self.rows("SELECT model, array_length(vector) AS dimensions FROM embeddings LIMIT 1")
        return None if first.is_empty() else first.row(0)

    @cached_property
    def posting_statistics(self) -> dict[str, tuple[int, float]]:
        """By kind of text in the inverted index: the number of texts, and their mean length in terms."""
        rows = self.rows("SELECT kind, texts, mean_length FROM search.posting_statistics")
        return {kind: (texts, mean) for kind, texts, mean in rows.iter_rows()}

    @cached_property
    def languages(self) -> dict[str, tuple[int, frozenset[str]]]:
        """By language of the documents: the number of documents, and its stop words."""
        rows = self.rows("SELECT language, documents, stop_words FROM search.languages")
        return {language: (documents, frozenset(words)) for language, documents, words in rows.iter_rows()}

    @cached_property
    def source_tokens(self) -> int:
        """Tokens of all text units, as contexts show them."""
        return self.numbers("SELECT coalesce(sum(line_tokens), 0)::BIGINT FROM text_units", {})[0]

    @cached_property
    def parents(self) -> dict[int, int]:
        """By community its parent; -1 at the coarsest level."""
        return dict(self.rows("SELECT community, parent FROM communities").iter_rows())

    @cached_property
    def publication(self) -> int:
        """Number of the publication; 0 for a file without one."""
        row = self.rows("SELECT max(number) AS number FROM publication")
        return int(row.item() or 0)


def _fetched(cursor: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, Any] | None) -> list[Any]:
    return interruptible(cursor, lambda: cursor.execute(query, dict(parameters or {})).fetchall())


def check_text(query: str) -> None:
    """Raise StoreError for a text with halves of characters, which DuckDB takes for no text at all."""
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise StoreError(
            f"Character {error.start + 1} of the query is half of a character (a lone surrogate). Remove it; in a "
            "shell, check that its text is UTF-8."
        ) from None


def _identity(file: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one that has its name later; an open file keeps it."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


class CurrentPublication:
    """The publications in an index folder, or a single publication.

    Args:
        path: a data folder, its index folder (with publications/ and graphrag.duckdb) or a .duckdb file.
        default: where to look without a path; else the index folder of the settings, `<GRAPHRAG_DATA or ./data>/index`.
    """

    def __init__(self, path: str | Path | None = None, default: Path | None = None) -> None:
        self.path = _index_folder(path or default)
        self._is_given = path is not None
        self._lock = threading.Lock()
        self._reader: Reader | None = None
        self._identity: tuple[int, int] | None = None
        self._closed = False

    def reader(self) -> Reader:
        """Return a reader of the current publication. Get one per question, to see the next publication.

        Raises:
            IndexMissing: nothing is published yet.
            StoreError: the file cannot be opened.
            QueryError: `close` was called.
            GraphRAGError: the process is a fork of one that has read an index.
        """
        use_threads()
        with self._lock:
            if self._closed:
                raise QueryError("This GraphRAG is closed. Make another one.")
            current = self._current_file()
            identity = _identity(current)
            if self._reader is None or (self._reader.path, self._identity) != (current, identity):
                # The old reader is not closed: another thread may still use it.
                self._reader, self._identity = self._open(current), identity
            return self._reader

    def _open(self, current: Path) -> "Reader":
        """Return a reader of the current publication or, where that is damaged or gone, of the newest whole one."""
        try:
            return Reader(current, open_publication(current))
        except StoreError as error:
            for number in reversed(kept_publications(self.path)):
                path = publication_file(self.path, number).resolve()
                if path == current:
                    continue
                with contextlib.suppress(StoreError):
                    reader = Reader(path, open_publication(path))
                    if self._current_file() == current:  # else a newer one was published meanwhile
                        log.warning(
                            "%s Reading publication %d instead. Run `graphrag-assets index` to repair it.",
                            error,
                            number,
                        )
                    return reader
            raise

    def close(self) -> None:
        """Close the file for good."""
        with self._lock:
            self._closed = True
            if self._reader is not None:
                self._reader.close()
            self._reader = None

    def _current_file(self) -> Path:
        """Return the file that graphrag.duckdb leads to, or is; where that is lost, the newest publication."""
        if self.path.is_file():
            return self.path.resolve()
        stable = self.path / STABLE_NAME
        if (number := current_number(self.path)) is not None:
            return publication_file(self.path, number).resolve()
        if stable.is_file():
            return stable.resolve()
        if numbers := kept_publications(self.path):
            return publication_file(self.path, numbers[-1])
        if self._is_given and not self.path.exists():
            raise IndexMissing(
                f"{self.path} does not exist. Give the data folder of an index, its index folder or a .duckdb file."
            )
        raise IndexMissing(
            f"Nothing is published in {self.path} yet. Run `graphrag-assets index`, or materialize "
            "the asset publication; set another location with GRAPHRAG_DATA or GraphRAG(path)."
        )


def _index_folder(path: str | Path | None) -> Path:
    """Return the index folder of the settings, or of the data folder `path`; any other path as it is."""
    from graphrag_assets.settings import Settings

    if path is None:
        return Settings.load().index_folder
    folder, within = Path(path), Path(path) / "index"
    has_publication = (folder / STABLE_NAME).is_file() or kept_publications(folder)
    return folder if has_publication or not within.is_dir() else within


def open_publication(path: Path) -> duckdb.DuckDBPyConnection:
    """Return an in-memory database with the file attached read-only as `published`, and nothing else within its
    reach.
    """
    if not path.is_file():
        raise StoreError(f"The publication {path} no longer exists. Publish again: `graphrag-assets index`.")
    refuse_denied(path)
    # An in-memory database with the file attached: DuckDB shares a database and its settings among all connections of a
    # process to one file, and the settings below must not apply to other connections.
    connection = duckdb.connect(config=_CONFIG)
    try:
        connection.execute(f"ATTACH {literal(path)} AS published (READ_ONLY)")
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        refuse_other_version(connection, "published.publication", path)
    except duckdb.CatalogException:
        connection.close()
        raise StoreError(
            f"{path} is not a publication. Give the index folder, or its {STABLE_NAME}; the working database "
            "is not for reading."
        ) from None
    except (duckdb.Error, OtherVersionError) as error:
        connection.close()
        if isinstance(error, OtherVersionError):
            raise
        writing = "already attached" in str(error)
        remedy = f"Close that connection, or open it with duckdb.connect({str(path)!r}, read_only=True). DuckDB says: "
        reason = f"this process has it open for writing. {remedy}" if writing else ""
        raise StoreError(f"Cannot open the publication {path}: {reason}{error}") from error
    return connection
