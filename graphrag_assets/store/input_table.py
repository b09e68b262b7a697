"""The rows of a table as documents: a table or view in DuckDB or PostgreSQL, or Parquet files.

A batch is the rows that share a value of a column, or one of N sets by the hash of their ids. It is read as a file of
JSON lines, so that everything after it is as for a file. The table is only read, in one short statement at a time.
"""

import contextlib
import functools
import io
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import sqlalchemy as sa
from upath import UPath

from graphrag_assets.errors import InputError, RefusedFileError
from graphrag_assets.ids import stable_id
from graphrag_assets.runtime.masking import without_credentials
from graphrag_assets.store.connections import NO_EXTENSIONS
from graphrag_assets.store.input_files import Input, Listed, SourceFile
from graphrag_assets.store.schema import literal

SCHEMES = ("duckdb:", "postgresql:", "postgresql+")
_N_BATCHES = "16"
_LOCK_SECONDS = 15.0
"""How long another process may keep a DuckDB file open for writing before this is an error."""

# By dialect: one of n batches by a hash of the id, as `hashed_name` has it; and a hash of all rows of a batch.
_HASHED = {
    "duckdb": "lpad((('0x' || left(md5({id}::VARCHAR), 8))::BIGINT % {n})::VARCHAR, {width}, '0')",
    "postgresql": "lpad((('x' || left(md5({id}::text), 8))::bit(32)::bigint % {n})::text, {width}, '0')",
}
_VERSION = {"duckdb": "bit_xor(hash(t))::VARCHAR", "postgresql": "sum(hashtextextended(t::text, 0))::text"}


@dataclass(frozen=True)
class InputTable(Input):
    """A table at a URL: `duckdb:///file.duckdb?table=raw.tickets&partition_by=month`, `postgresql://…?table=…`.

    `duckdb:///?table=folder/*.parquet` has Parquet files. `partition_by` is a column, or the number of batches that
    rows are divided into; without it there are 16. Every method raises InputError when the table cannot be read. A
    missing table is never taken for an empty one, because an empty table means that every document was deleted.

    Attributes:
        id_column: identifies a row. The table must have it.
        max_file_bytes: batches with more, as JSON lines, are refused.
    """

    url: str
    id_column: str = "id"
    max_file_bytes: int = 1_000_000_000

    def names(self) -> list[str]:
        """The names of all batches."""
        return list(self._versions())

    def has(self, batch: str) -> bool:
        """Whether the table has rows of a batch."""
        return bool(self._query(f"SELECT 1 AS one FROM {self._from} WHERE {self._batch} = {{batch}} LIMIT 1", batch))

    def files(self, batch: str) -> Iterator[SourceFile]:
        """The rows of a batch as one file; none for a batch that is not there."""
        statement = f"SELECT {self._version} AS version FROM {self._from} WHERE {self._batch} = {{batch}}"
        version = self._query(statement, batch)[0]["version"]
        return iter([self._file(batch, version)] if version else [])

    def listed(self) -> Iterator[Listed]:
        """Every batch with its rows as a file."""
        versions = self._versions()
        return (Listed(batch, [self._file(batch, versions[batch])]) for batch in self.batches())

    def digest(self, batch: str, files: Iterable[SourceFile] | None = None) -> str:
        """A hash of the rows of a batch, which the database has computed, so that none is read for it.

        Another version of the database may hash otherwise: then the rows are read again, and nothing changes.
        """
        versions = [file.version for file in (self.files(batch) if files is None else files)]
        return stable_id("table", self._table, batch, *versions)

    def open(self, location: UPath | str) -> BinaryIO:
        """Open the rows of a batch as JSON lines, in the order of their ids."""
        key = _quoted(self.id_column)
        order = f"{key}::text" if self._dialect == "postgresql" else f"{key}::VARCHAR"
        statement = f"SELECT t.* FROM {self._from} WHERE {self._batch} = {{batch}} ORDER BY {order}"
        try:
            rows = self._query(statement, str(location))
        except InputError as error:
            raise RefusedFileError(str(error), "Index again when it can be read.") from error
        return io.BytesIO("".join(json.dumps(row, default=_plain) + "\n" for row in rows).encode())

    def _file(self, batch: str, version: str) -> SourceFile:
        name = self._table.rpartition("/")[2].replace("*", "")
        return SourceFile(f"{name}/{batch}.jsonl", 0, None, batch, self, version)

    @property
    def _dialect(self) -> str:
        return sa.make_url(self.url).get_backend_name()

    def _parameter(self, name: str, default: str = "") -> str:
        value = sa.make_url(self.url).query.get(name, default)
        return value if isinstance(value, str) else value[-1]

    @property
    def _table(self) -> str:
        if name := self._parameter("table"):
            return name
        raise InputError(f"The input {self._shown} names no table. Add ?table=schema.name to it.")

    @property
    def _from(self) -> str:
        """The table with the alias t, as SQL; the names are quoted."""
        if self._dialect == "duckdb" and self._table.endswith((".parquet", ".parq")):
            return f"read_parquet({literal(self._table)}) AS t"
        parts = [*(["input"] if self._file_name else []), *self._table.split(".")]
        return f"{'.'.join(map(_quoted, parts))} AS t"

    @property
    def _file_name(self) -> str:
        """The path of the DuckDB file; empty for Parquet files and PostgreSQL."""
        return (sa.make_url(self.url).database or "") if self._dialect == "duckdb" else ""

    @property
    def _batch(self) -> str:
        """The name of a row's batch, as SQL."""
        by = self._parameter("partition_by", _N_BATCHES)
        if not re.fullmatch(r"[1-9]\d{0,4}", by):
            text = "text" if self._dialect == "postgresql" else "VARCHAR"
            return f"coalesce({_quoted(by)}::{text}, 'none')"
        return _HASHED[self._dialect].format(id=_quoted(self.id_column), n=int(by), width=len(str(int(by) - 1)))

    @property
    def _version(self) -> str:
        return _VERSION[self._dialect]

    @property
    def _shown(self) -> str:
        return without_credentials(self.url)

    def _versions(self) -> dict[str, str]:
        """A hash of the rows of each batch."""
        return self._versions_at(self._stamp())

    @functools.lru_cache(maxsize=8)  # noqa: B019  (of a frozen value)
    def _versions_at(self, stamp: object) -> dict[str, str]:
        """The same for files as they are at a time; where `stamp` is new each time, nothing is remembered."""
        found = self._query(f"SELECT {self._batch} AS batch, {self._version} AS version FROM {self._from} GROUP BY 1")
        return {row["batch"]: row["version"] for row in sorted(found, key=lambda row: row["batch"])}

    def _stamp(self) -> object:
        """What differs when the files of the table may have changed; of a server nobody knows, so it is the time."""
        names = [self._file_name, f"{self._file_name}.wal"] if self._file_name else []
        if not names:
            return time.monotonic_ns()
        states = [Path(name).stat() for name in names if Path(name).exists()]
        return tuple((state.st_mtime_ns, state.st_size, state.st_ino) for state in states)

    def _query(self, statement: str, batch: str | None = None) -> list[dict[str, Any]]:
        """The rows of a statement, in which `{batch}` stands for a parameter."""
        run = _run_in_postgres if self._dialect == "postgresql" else _run_in_duckdb
        try:
            return run(self, statement, {"batch": batch} if batch is not None else {})
        except (duckdb.Error, sa.exc.SQLAlchemyError) as error:
            reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0].rstrip(".")
            raise InputError(
                f"The input {self._shown} cannot be read: {reason}. Check the table, its columns "
                f"({self.id_column!r} must identify a row: GRAPHRAG_ID_COLUMN) and that what writes it has run."
            ) from error


def _run_in_duckdb(table: InputTable, statement: str, parameters: dict[str, str]) -> list[dict[str, Any]]:
    with contextlib.closing(duckdb.connect(config=NO_EXTENSIONS)) as connection:
        if table._file_name:
            if not Path(table._file_name).exists():
                raise InputError(f"The input {table._shown} is missing. Run what writes it, or correct GRAPHRAG_INPUT.")
            _attach(connection, table._file_name)
        result = connection.execute(statement.format(batch="$batch"), parameters)
        return [dict(zip(_columns(result.description), row, strict=True)) for row in result.fetchall()]


def _columns(description: Sequence[Any]) -> list[str]:
    return [column[0] for column in description]


def _attach(connection: duckdb.DuckDBPyConnection, file: str) -> None:
    """Attach a file for reading; while another process has it open for writing, try again.

    Raises:
        duckdb.IOException: that process keeps it open.
    """
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            connection.execute(f"ATTACH {literal(file)} AS input (READ_ONLY)")
            return
        except duckdb.IOException as error:
            if "lock" not in str(error).lower() or time.monotonic() > end:
                raise
            time.sleep(0.2)


def _run_in_postgres(table: InputTable, statement: str, parameters: dict[str, str]) -> list[dict[str, Any]]:
    url = sa.make_url(table.url).difference_update_query(["table", "partition_by"])
    driver = url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url
    with _engine(driver).connect() as connection:
        statement = statement.replace(":", "\\:").format(batch=":batch")
        return [dict(row) for row in connection.execute(sa.text(statement), parameters).mappings()]


def _engine(url: sa.URL) -> sa.Engine:
    options = {"connect_timeout": "10", "options": "-c statement_timeout=300s -c default_transaction_read_only=on"}
    return sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args=options)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain(value: Any) -> Any:
    """A value that JSON has no type for."""
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
