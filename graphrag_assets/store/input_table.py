"""The rows of a table as documents: a table or view in a DuckDB file, or Parquet files.

A batch is the rows that share a value of a column, or one of N sets by the hash of their ids. It is read as a file of
JSON lines, so that everything after it is as for a file. The table is only read, in one short statement at a time.
"""

import contextlib
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs

import duckdb
from upath import UPath

from graphrag_assets.errors import InputError
from graphrag_assets.ids import stable_id
from graphrag_assets.store.connections import NO_EXTENSIONS
from graphrag_assets.store.input_files import BatchFiles, Input, SourceFile, name_error, printable
from graphrag_assets.store.schema import identifier, literal

SCHEME = "duckdb:///"
_N_BATCHES = "16"

# A row as one line of JSON, with the names of its columns. DuckDB writes what Python has no value for, such as a date
# of infinity, and a map by dates. No column has the name of the alias: it would hide the row.
_ALIAS = '"graphrag row"'
_JSON = f"to_json({_ALIAS})::VARCHAR"
_VERSION = f"sum(hash({_JSON})::HUGEINT)::VARCHAR"
"""A hash of all rows of a batch."""


@dataclass(frozen=True)
class InputTable(Input):
    """A table at a URL: `duckdb:///file.duckdb?table=raw.tickets&partition_by=month`.

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

    def list_batches(self) -> Iterator[BatchFiles]:
        rows = self._select(f"{self._batch}, {_VERSION}, count(*)", tail="GROUP BY 1 ORDER BY 1 NULLS LAST")
        for batch, version, n_rows in rows:
            if batch is None:
                have = "row has" if n_rows == 1 else "rows have"
                error = f"{n_rows:,} {have} no value in the column {self.id_column!r}"
                hint = "Fill it in, or set GRAPHRAG_ID_COLUMN to a column that identifies every row."
                yield BatchFiles(self._table, [], error, hint)
            elif error := name_error(batch):
                hint = "Change the value, or choose another column with partition_by."
                yield BatchFiles(printable(batch), [], error, hint)
            else:
                yield BatchFiles(batch, [self._file(batch, version)])

    def files(self, batch: str) -> list[SourceFile]:
        [(version,)] = self._select(_VERSION, batch)
        return [self._file(batch, version)] if version else []

    def digest(self, batch: str, files: Iterable[SourceFile]) -> str:
        """Return a hash of the rows of a batch, which the database has computed, so that none is read for it.

        Another version of the database may hash otherwise: then the rows are read again, and nothing changes.
        """
        return stable_id("table", self._table, batch, *(file.version for file in files))

    def open(self, location: UPath | str) -> BinaryIO:
        """Open the rows of a batch as JSON lines, in the order of their ids."""
        rows = self._select(_JSON, str(location), f"ORDER BY {self._id}, 1")
        # A column of type JSON keeps the line breaks between its values.
        return io.BytesIO("".join(row.replace("\n", " ").replace("\r", " ") + "\n" for (row,) in rows).encode())

    def _file(self, batch: str, version: str) -> SourceFile:
        name = self._table.rpartition("/")[2].replace("*", "")
        return SourceFile(f"{name}/{batch}.jsonl", 0, None, batch, self, version)

    @property
    def _file_name(self) -> str:
        """The path of the DuckDB file; empty for Parquet files."""
        return self.url.partition("?")[0].removeprefix(SCHEME)

    def _parameter(self, name: str, default: str = "") -> str:
        return parse_qs(self.url.partition("?")[2]).get(name, [default])[-1]

    @property
    def _table(self) -> str:
        if name := self._parameter("table"):
            return name
        raise InputError(f"The input {SCHEME}{self._file_name} names no table. Add ?table=schema.name to it.")

    @property
    def _from(self) -> str:
        """The table with its alias, as SQL; the names are quoted."""
        if self._table.endswith((".parquet", ".parq")):
            return f"read_parquet({literal(self._table)}) AS {_ALIAS}"
        parts = [*(["input"] if self._file_name else []), *self._table.split(".")]
        return f"{'.'.join(map(identifier, parts))} AS {_ALIAS}"

    @property
    def _id(self) -> str:
        return f"{identifier(self.id_column)}::VARCHAR"

    @property
    def _batch(self) -> str:
        """The name of a row's batch, as SQL; NULL of a row without an id."""
        by = self._parameter("partition_by", _N_BATCHES)
        if not re.fullmatch(r"-?\d+", by):
            name = f"coalesce(nullif({identifier(by)}::VARCHAR, ''), 'none')"
        elif 1 <= int(by) < 100_000:
            number = f"('0x' || left(md5({self._id}), 8))::BIGINT % {int(by)}"  # as `hashed_name`
            name = f"lpad(({number})::VARCHAR, {len(str(int(by) - 1))}, '0')"
        else:
            raise InputError(f"partition_by={by}: give a number of batches from 1 to 99,999, or a column.")
        return f"CASE WHEN trim({self._id}) <> '' THEN {name} END"

    def _select(self, columns: str, batch: str | None = None, tail: str = "") -> list[tuple[Any, ...]]:
        """Expressions over the rows of a batch, or of the table."""
        where = f" WHERE {self._batch} = $batch" if batch is not None else ""
        statement = f"SELECT {columns} FROM {self._from}{where} {tail}"
        place = f"{SCHEME}{self._file_name}"
        if self._file_name and not Path(self._file_name).exists():
            raise InputError(f"The input {place} is missing. Run what writes it, or correct GRAPHRAG_INPUT.")
        try:
            with contextlib.closing(duckdb.connect(config=NO_EXTENSIONS)) as connection:
                if self._file_name:
                    connection.execute(f"ATTACH {literal(self._file_name)} AS input (READ_ONLY)")
                connection.execute("SET TimeZone = 'UTC'")  # a time must have the same text on every machine
                return connection.execute(statement, {"batch": batch} if batch is not None else {}).fetchall()
        except duckdb.Error as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".!")
            if holder := re.search(r"Conflicting lock is held in (.*\(PID \d+\))", reason):
                raise InputError(
                    f"The input {place} is locked by {holder[1]}, which writes to it. Index again when it has ended."
                ) from error
            of_file = f" of {place}" if self._file_name else ""
            raise InputError(
                f"The table {self._table}{of_file} cannot be read: {reason}. Check its name, its columns "
                f"({self.id_column!r} must identify a row: GRAPHRAG_ID_COLUMN) and that what writes it has run."
            ) from error
