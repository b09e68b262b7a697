"""Reading the published index: finds the current file, opens it read-only, follows the next publication."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from graphrag_assets.errors import StoreError

POINTER = "CURRENT"
STABLE_NAME = "graphrag.duckdb"

_TYPES = {
    "BOOLEAN": pl.Boolean,
    "INTEGER": pl.Int32,
    "BIGINT": pl.Int64,
    "FLOAT": pl.Float32,
    "DOUBLE": pl.Float64,
    "VARCHAR": pl.String,
}


@dataclass(frozen=True)
class Reader:
    """One published file, open for reading: what it answers never changes. Safe to share among threads."""

    path: Path
    connection: duckdb.DuckDBPyConnection

    def query(self, query: str, parameters: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """The result of any query, with DuckDB's types; values come in as parameters only (`$name`).

        Raises:
            StoreError: DuckDB rejects the query; the message is DuckDB's.
        """
        with self._cursor() as cursor:
            result = cursor.sql(query, params=dict(parameters or {}))
            return pl.DataFrame() if result is None else result.pl()

    def rows(self, query: str, parameters: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """As `query`, for the small results of searches: a third faster, because it is planned once, not twice.

        Types of nested columns are inferred from their values.
        """
        with self._cursor() as cursor:
            found = cursor.execute(query, dict(parameters or {})).fetchall()
            schema = {name: _TYPES.get(str(kind)) for name, kind, *_ in cursor.description or ()}
            return pl.DataFrame(found, schema, orient="row", infer_schema_length=None)

    def numbers(self, query: str, parameters: Mapping[str, Any]) -> list[int]:
        """The first column of a query's result. The quickest way to a list of ids."""
        with self._cursor() as cursor:
            return [row[0] for row in cursor.execute(query, dict(parameters)).fetchall()]

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self.connection.cursor()  # a connection serves one thread at a time, and cursors are cheap
        try:
            yield cursor
        except duckdb.Error as error:
            raise StoreError(f"Cannot run the query on {self.path}: {error}") from error
        finally:
            cursor.close()

    @cached_property
    def embedding(self) -> tuple[str, int] | None:
        """Name of the embedding model and the vectors' dimensions; None for an index without vectors."""
        first = self.rows("SELECT model, array_length(vector) AS dimensions FROM embeddings LIMIT 1")
        return None if first.is_empty() else first.row(0)

    @cached_property
    def posting_statistics(self) -> dict[str, tuple[int, float]]:
        """For each kind of text in the inverted index: how many there are, and their mean length in terms."""
        found = self.rows("SELECT kind, count(*) AS n, avg(length) AS mean FROM posting_lengths GROUP BY kind")
        return {kind: (n, mean) for kind, n, mean in found.iter_rows()}

    @cached_property
    def publication(self) -> int:
        """Number of the publication; 0 for a file without one."""
        row = self.rows("SELECT max(number) AS number FROM publication")
        return int(row.item() or 0)


class PublishedIndex:
    """The published index in a folder, or a single published file.

    Args:
        path: an index folder (with CURRENT, publications/ and graphrag.duckdb) or a .duckdb file.
            Default: the index folder of the settings, `<GRAPHRAG_DATA or ./data>/index`.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else _default_folder()
        self._lock = threading.Lock()
        self._reader: Reader | None = None

    def reader(self) -> Reader:
        """The newest publication. Ask for a reader per question: a later one may see a newer publication.

        Raises:
            StoreError: nothing is published yet, or the file cannot be opened.
        """
        with self._lock:
            current = self._current_file()
            if self._reader is None or self._reader.path != current:
                # The old reader is not closed: a question in another thread may still use it.
                self._reader = Reader(current, _open(current))
            return self._reader

    def _current_file(self) -> Path:
        """The numbered file that CURRENT names; without CURRENT, the file behind the stable name."""
        if self.path.is_file():
            return self.path.resolve()
        try:
            return (self.path / (self.path / POINTER).read_text().strip()).resolve()
        except OSError:
            stable = self.path / STABLE_NAME
        if stable.is_file():
            return stable.resolve()
        raise StoreError(
            f"Nothing is published in {self.path} yet. Run `python -m graphrag_assets index`, or materialise "
            "the asset published_index; another place is set by GRAPHRAG_DATA or GraphRAG(path)."
        )


def _default_folder() -> Path:
    from graphrag_assets.settings import Settings  # pydantic-settings costs 0.2 s; a given path does without

    return Settings.load().index_folder


def _open(path: Path) -> duckdb.DuckDBPyConnection:
    if not path.is_file():
        raise StoreError(f"The published index {path} is gone. Publish again: `python -m graphrag_assets index`.")
    try:
        # As anyone would, and without a SET: within a process DuckDB shares an open file among connections of one
        # configuration only, and a setting made here would hold for the user's own connections to it too.
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.ConnectionException as error:
        raise StoreError(
            f"Cannot open the published index {path}: this process has it open already, for writing or with a "
            "configuration of its own. Close that connection, or open it as the index does: "
            f"duckdb.connect({str(path)!r}, read_only=True) without config. DuckDB says: {error}"
        ) from error
    except duckdb.Error as error:
        raise StoreError(f"Cannot open the published index {path}: {error}") from error
    tables = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if "publication" not in tables:
        raise StoreError(
            f"{path} is not a published index. Give the index folder, or its {STABLE_NAME}; the working database "
            "is not for reading."
        )
    return connection
