"""The rows of a table as documents: a table or view in DuckDB or PostgreSQL, or Parquet files.

A batch is the rows that share a value of a column, or one of N sets by the hash of their ids. It is read as a file of
JSON lines, so that everything after it is as for a file. The table is only read, in one short statement at a time.
"""

import contextlib
import functools
import io
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import sqlalchemy as sa
from upath import UPath

from graphrag_assets.errors import InputError, RefusedFileError
from graphrag_assets.ids import stable_id
from graphrag_assets.runtime.masking import without_credentials
from graphrag_assets.store.connections import NO_EXTENSIONS
from graphrag_assets.store.input_files import Input, Listed, SourceFile, UnusableName, unusable, usable
from graphrag_assets.store.locks import when_unlocked
from graphrag_assets.store.schema import identifier, literal

SCHEMES = ("duckdb:", "postgresql:", "postgresql+")
_N_BATCHES = "16"
_LOCK_SECONDS = 15.0
"""How long another process may keep a DuckDB file open for writing before this is an error."""

# A row as one line of JSON, with the names of its columns. The database writes what Python has no value for, such as a
# date of infinity, and a map by dates. No column has the name of the alias: it would hide the row.
_ALIAS = '"graphrag row"'
_JSON = f"to_json({_ALIAS})::text"
# By dialect: the number by which `hashed_name` divides ids, and a hash of all rows of a batch.
_HASHED = {
    "duckdb": "('0x' || left(md5({id}), 8))::BIGINT",
    "postgresql": "('x' || left(md5({id}), 8))::bit(32)::bigint",
}
_VERSION = {"duckdb": f"sum(hash({_JSON})::HUGEINT)::text", "postgresql": f"sum(hashtextextended({_JSON}, 0))::text"}


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
        return [batch for batch in self._versions() if batch is not None]

    def has(self, batch: str) -> bool:
        """Whether the table has rows of a batch."""
        return bool(self._select("1", batch, "LIMIT 1"))

    def files(self, batch: str) -> Iterator[SourceFile]:
        """The rows of a batch as one file; none for a batch that is not there."""
        [(version,)] = self._select(self._version, batch)
        return iter([self._file(batch, version)] if version else [])

    def listed(self) -> Iterator[Listed]:
        """Every batch with its rows as a file."""
        versions = {batch: version for batch, (version, _) in self._versions().items() if batch is not None}
        return (Listed(batch, [self._file(batch, versions[batch])]) for batch in sorted(usable(versions)))

    def unusable_names(self) -> list[UnusableName]:
        """The values of the partition column that are no batches, and how many rows have no id."""
        versions = self._versions()
        found = unusable(filter(None, versions), "Change the value, or choose another column with partition_by.")
        if None in versions:
            n_rows = versions[None][1]
            error = f"{n_rows:,} {'row has' if n_rows == 1 else 'rows have'} no value in the column {self.id_column!r}"
            hint = "Fill it in, or set GRAPHRAG_ID_COLUMN to a column that identifies every row."
            found.append(UnusableName(self._table, error, hint))
        return found

    def digest(self, batch: str, files: Iterable[SourceFile] | None = None) -> str:
        """A hash of the rows of a batch, which the database has computed, so that none is read for it.

        Another version of the database may hash otherwise: then the rows are read again, and nothing changes.
        """
        versions = [file.version for file in (self.files(batch) if files is None else files)]
        return stable_id("table", self._table, batch, *versions)

    def open(self, location: UPath | str) -> BinaryIO:
        """Open the rows of a batch as JSON lines, in the order of their ids."""
        try:
            rows = self._select(_JSON, str(location), f"ORDER BY {self._id}, 1")
        except InputError as error:
            raise RefusedFileError(str(error), "Index again when it can be read.") from error
        # PostgreSQL keeps the line breaks between the values of a column of type json
        return io.BytesIO("".join(row.replace("\n", " ").replace("\r", " ") + "\n" for (row,) in rows).encode())

    def _file(self, batch: str, version: str) -> SourceFile:
        name = self._table.rpartition("/")[2].replace("*", "")
        return SourceFile(f"{name}/{batch}.jsonl", 0, None, batch, self, version)

    @cached_property
    def _url(self) -> sa.URL:
        return sa.make_url(self.url)

    @property
    def _dialect(self) -> str:
        return self._url.get_backend_name()

    def _parameter(self, name: str, default: str = "") -> str:
        value = self._url.query.get(name, default)
        return value if isinstance(value, str) else value[-1]

    @property
    def _table(self) -> str:
        if name := self._parameter("table"):
            return name
        raise InputError(f"The input {self._place} names no table. Add ?table=schema.name to it.")

    @property
    def _from(self) -> str:
        """The table with its alias, as SQL; the names are quoted."""
        if self._dialect == "duckdb" and self._table.endswith((".parquet", ".parq")):
            return f"read_parquet({literal(self._table)}) AS {_ALIAS}"
        parts = [*(["input"] if self._file_name else []), *self._table.split(".")]
        return f"{'.'.join(map(identifier, parts))} AS {_ALIAS}"

    @property
    def _file_name(self) -> str:
        """The path of the DuckDB file; empty for Parquet files and PostgreSQL."""
        return (self._url.database or "") if self._dialect == "duckdb" else ""

    @property
    def _id(self) -> str:
        return f"{identifier(self.id_column)}::text"

    @property
    def _batch(self) -> str:
        """The name of a row's batch, as SQL; NULL of a row without an id."""
        by = self._parameter("partition_by", _N_BATCHES)
        if not re.fullmatch(r"-?\d+", by):
            name = f"coalesce(nullif({identifier(by)}::text, ''), 'none')"
        elif 1 <= int(by) < 100_000:
            hashed = _HASHED[self._dialect].format(id=self._id)
            name = f"lpad(({hashed} % {int(by)})::text, {len(str(int(by) - 1))}, '0')"
        else:
            raise InputError(f"partition_by={by}: give a number of batches from 1 to 99,999, or a column.")
        return f"CASE WHEN trim({self._id}) <> '' THEN {name} END"

    @property
    def _version(self) -> str:
        return _VERSION[self._dialect]

    @property
    def _place(self) -> str:
        """The URL without credentials and query."""
        return without_credentials(str(self._url.set(query={})))

    def _versions(self) -> dict[str | None, tuple[str, int]]:
        """A hash of the rows of each batch, and their number; under None those without an id."""
        return self._versions_at(self._stamp())

    @functools.lru_cache(maxsize=8)  # noqa: B019  (of a frozen value)
    def _versions_at(self, stamp: object) -> dict[str | None, tuple[str, int]]:
        """The same for files as they are at a time; where `stamp` is new each time, nothing is remembered."""
        found = self._select(f"{self._batch}, {self._version}, count(*)", tail="GROUP BY 1")
        return {batch: (version, n_rows) for batch, version, n_rows in found}

    def _stamp(self) -> object:
        """What differs when the files of the table may have changed; of a server nobody knows, so it is the time."""
        names = [self._file_name, f"{self._file_name}.wal"] if self._file_name else []
        if not names:
            return time.monotonic_ns()
        states = [Path(name).stat() for name in names if Path(name).exists()]
        return tuple((state.st_mtime_ns, state.st_size, state.st_ino) for state in states)

    def _select(self, columns: str, batch: str | None = None, tail: str = "") -> list[tuple[Any, ...]]:
        """Expressions over the rows of a batch, or of the table."""
        where = f" WHERE {self._batch} = $batch" if batch is not None else ""
        statement = f"SELECT {columns} FROM {self._from}{where} {tail}"
        run = _run_in_postgres if self._dialect == "postgresql" else _run_in_duckdb
        try:
            return run(self, statement, {"batch": batch} if batch is not None else {})
        except (duckdb.Error, sa.exc.SQLAlchemyError) as error:
            reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0].rstrip(".!")
            place = f" of {self._place}" if self._url.database else ""
            raise InputError(
                f"The table {self._table}{place} cannot be read: {reason}. Check its name, its columns "
                f"({self.id_column!r} must identify a row: GRAPHRAG_ID_COLUMN) and that what writes it has run."
            ) from error


def _run_in_duckdb(table: InputTable, statement: str, parameters: dict[str, str]) -> list[tuple[Any, ...]]:
    with contextlib.closing(duckdb.connect(config=NO_EXTENSIONS)) as connection:
        if table._file_name:
            if not Path(table._file_name).exists():
                raise InputError(f"The input {table._place} is missing. Run what writes it, or correct GRAPHRAG_INPUT.")
            attach = f"ATTACH {literal(table._file_name)} AS input (READ_ONLY)"
            when_unlocked(lambda: connection.execute(attach), _LOCK_SECONDS)
        connection.execute("SET TimeZone = 'UTC'")  # a time must have the same text on every machine
        return connection.execute(statement, parameters).fetchall()


def _run_in_postgres(table: InputTable, statement: str, parameters: dict[str, str]) -> list[tuple[Any, ...]]:
    url = table._url.difference_update_query(["table", "partition_by"])
    driver = url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url
    with _engine(driver).connect() as connection:
        query = sa.text(statement.replace(":", "\\:").replace(" = $batch", " = :batch"))
        return [tuple(row) for row in connection.execute(query, parameters)]


def _engine(url: sa.URL) -> sa.Engine:
    options = "-c statement_timeout=300s -c default_transaction_read_only=on -c timezone=UTC"
    return sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args={"connect_timeout": "10", "options": options})
