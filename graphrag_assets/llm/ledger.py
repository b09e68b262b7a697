"""The ledger: every valid answer is stored before it is used, so that nothing is ever paid for twice.

One table, `llm_calls`, in SQLite (WAL) or any database of SQLAlchemy. One thread reads and one writes, each all
that waits at once, so that a call pays for a fraction of a commit; an awaited write is on disk. Any number of
processes may share a ledger and be killed at any moment.
"""

import asyncio
import hashlib
import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from graphrag_assets.llm.model_errors import LedgerError, without_secrets
from graphrag_assets.llm.single_flight import Flights
from graphrag_assets.llm.write_batcher import Worker

_metadata = sa.MetaData()
LLM_CALLS = sa.Table(
    "llm_calls",
    _metadata,
    sa.Column("key", sa.String(64), primary_key=True, comment="Hash of all that determines the answer"),
    sa.Column(
        "kind",
        sa.String(16),
        nullable=False,
        comment="chat, embedding, invalid (paid for, not usable), replaced, purged",
    ),
    sa.Column("task", sa.String(64), nullable=False),
    sa.Column("provider", sa.String(64), nullable=False),
    sa.Column("model", sa.String(255), nullable=False),
    sa.Column("parameters", sa.Text, nullable=False, comment="JSON"),
    sa.Column("response", sa.Text, comment="The answer's text"),
    sa.Column("vector", sa.LargeBinary, comment="float32, little endian"),
    sa.Column("prompt_tokens", sa.Integer, nullable=False),
    sa.Column("completion_tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.Float, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("batch", sa.Text),
    sa.Column("unit", sa.Text),
    sa.Column("run_id", sa.String(64)),
    sa.Column("created_at", sa.String(32), nullable=False, comment="ISO 8601, UTC"),
)
_BY_TIME = sa.Index("llm_calls_created_at", LLM_CALLS.c.created_at)
_BOOKS = [column for column in LLM_CALLS.c if column.name not in ("response", "vector")]
_HIT = [
    LLM_CALLS.c[name]
    for name in ("key", "response", "vector", "prompt_tokens", "completion_tokens", "seconds", "created_at")
]
_KEYS_PER_QUERY = 500


@dataclass(frozen=True)
class Entry:
    """One row to be written."""

    key: str
    kind: str
    task: str
    provider: str
    model: str
    parameters: str
    response: str | None = None
    vector: bytes | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    batch: str | None = None
    unit: str | None = None
    run_id: str | None = None


class Hit(NamedTuple):
    """A stored answer."""

    key: str
    response: str | None
    vector: bytes | None
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    created_at: str


def canonical(value: Any) -> str:
    """JSON in which equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def key_of(*parts: Any) -> str:
    """SHA-256 over the JSON of all that determines an answer."""
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


class _Write(NamedTuple):
    entries: Sequence[Entry]
    replace: bool


class Ledger:
    """The ledger at a file or an SQLAlchemy URL. Safe to share between threads and event loops.

    `flights` are the calls under way of all models that share it.
    """

    def __init__(self, where: str | Path):
        url = str(where) if "://" in str(where) else f"sqlite:///{Path(where).absolute()}"
        self._shown = sa.make_url(url).render_as_string(hide_password=True)
        self._password = sa.make_url(url).password
        self._engine = _engine(url)
        self._created = False
        self._creating = threading.Lock()
        self._file = _file(url)
        self._peek: sqlite3.Connection | None = None
        self._peeking = threading.Lock()
        self._reads = Worker("ledger reads", self._read, self._error)
        self._writes = Worker("ledger writes", self._write, self._error)
        self.flights = Flights()

    async def get(self, key: str) -> Hit | None:
        """The stored answer, if there is one."""
        return (await self.get_many([key])).get(key) if self.may_have(key) else None

    async def get_many(self, keys: Sequence[str]) -> dict[str, Hit]:
        """The stored answers by key."""
        return await asyncio.wrap_future(self._reads.submit(keys))

    async def put(self, *entries: Entry, replace: bool = False) -> None:
        """Store entries; on return they are on disk. The first entry of a key stays, unless `replace`.

        What was paid for an answer that is replaced stays in the books, as kind "replaced".
        """
        await asyncio.wrap_future(self._writes.submit(_Write(entries, replace)))

    def lookup_many(self, keys: Sequence[str]) -> set[str]:
        """Those of the keys that are stored, for callers without an event loop."""
        return set(self._reads.submit(keys).result())

    def may_have(self, key: str) -> bool:
        """Whether the key may be stored by now. On SQLite this is known in microseconds, elsewhere it is True.

        A way through a thread costs more, and right before a request is sent it would leave the provider idle.
        """
        if self._file is None or not self._created:
            return True
        try:
            with self._peeking:
                if self._peek is None:
                    self._peek = sqlite3.connect(self._file, check_same_thread=False, timeout=0.1)
                return bool(self._peek.execute("SELECT 1 FROM llm_calls WHERE key = ?", (key,)).fetchall())
        except sqlite3.Error:
            return True  # reading it tells what is wrong

    def spent_since(self, when: datetime) -> float:
        """US dollars of all calls since then."""
        total = sa.func.coalesce(sa.func.sum(LLM_CALLS.c.cost_usd), 0.0)
        return float(self.rows(sa.select(total).where(LLM_CALLS.c.created_at >= _iso(when)))[0][0])

    def spent_today(self) -> float:
        """US dollars of all calls of this day in UTC."""
        return self.spent_since(datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0))

    def frame(self, since: datetime | None = None) -> pl.DataFrame:
        """The books: every column of `llm_calls` but the answers themselves, oldest first."""
        query = sa.select(*_BOOKS).order_by(LLM_CALLS.c.created_at, LLM_CALLS.c.key)
        if since:
            query = query.where(LLM_CALLS.c.created_at >= _iso(since))
        types = {sa.Integer: pl.Int64, sa.Float: pl.Float64}
        schema = {column.name: types.get(type(column.type), pl.String) for column in _BOOKS}
        return pl.DataFrame([tuple(row) for row in self.rows(query)], schema=schema, orient="row")

    def close(self) -> None:
        """Finish what is waiting and let go of the database. The next use opens it again."""
        self._writes.stop()
        self._reads.stop()
        with self._peeking:
            if self._peek is not None:
                self._peek.close()
                self._peek = None
        self._engine.dispose()

    def execute(self, statement: sa.Update, values: Sequence[dict[str, Any]]) -> None:
        """Run a statement for each of the values, all in one transaction."""
        try:
            self._create()
            with self._engine.begin() as connection:
                if connection.dialect.name == "sqlite":
                    connection.exec_driver_sql("PRAGMA secure_delete = ON")
                connection.execute(statement, values)
        except sa.exc.SQLAlchemyError as error:
            raise self._error(error) from None

    def shrink(self) -> None:
        """Give free space back, so that nothing is left of what was deleted. SQLite only; PostgreSQL vacuums itself."""
        if self._file is None:
            return
        try:
            self._create()
            with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM")
                ((busy, *_),) = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sa.exc.SQLAlchemyError as error:
            raise self._error(error) from None
        if busy:
            raise self._error(TimeoutError("another process is reading it, so its log keeps what was deleted"))

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """The rows of a query."""
        try:
            self._create()
            with self._engine.connect() as connection:
                return connection.execute(query).all()
        except sa.exc.SQLAlchemyError as error:
            raise self._error(error) from None

    def _create(self) -> None:
        with self._creating:
            if not self._created:
                _create(self._engine)
                self._created = True

    def _write(self, jobs: Sequence[_Write]) -> list[None]:
        """All entries of all jobs in one transaction."""
        self._create()
        stale = [{"stale": entry.key, "to": uuid.uuid4().hex} for job in jobs if job.replace for entry in job.entries]
        now = _iso(datetime.now(UTC))
        rows = [_row(entry, now) for job in jobs for entry in job.entries]

        def transact() -> None:
            with self._engine.begin() as connection:
                if stale:
                    connection.execute(_REPLACED, stale)
                if rows:
                    _insert(connection, rows)

        _reconnecting(transact)
        return [None] * len(jobs)

    def _read(self, jobs: Sequence[Sequence[str]]) -> list[dict[str, Hit]]:
        """The stored answers for each job's keys."""
        self._create()
        keys = sorted({key for job in jobs for key in job})
        found: dict[str, Hit] = {}

        def select() -> None:
            with self._engine.connect() as connection:
                for start in range(0, len(keys), _KEYS_PER_QUERY):
                    found.update(
                        {row[0]: Hit(*row) for row in _hits(connection, keys[start : start + _KEYS_PER_QUERY])}
                    )

        _reconnecting(select)
        return [{key: found[key] for key in job if key in found} for job in jobs]

    def _error(self, error: Exception) -> LedgerError:
        cause = without_secrets(str(getattr(error, "orig", None) or error), self._password)
        return LedgerError(
            f"The ledger {self._shown} cannot be used: {cause.strip()}. Check GRAPHRAG_LEDGER_URL, that its "
            "database is up, and that its folder is on a local disk with space left."
        )


_REPLACED = (
    sa.update(LLM_CALLS)
    .where(LLM_CALLS.c.key == sa.bindparam("stale"))
    .values(key=sa.bindparam("to"), kind="replaced", response=None, vector=None)
)


def _reconnecting(work: Callable[[], None]) -> None:
    """Do the work, once more if the database has closed an idle connection."""
    try:
        work()
    except sa.exc.DBAPIError as error:
        if not error.connection_invalidated:
            raise
        work()


def _file(url: str) -> Path | None:
    """The file of an SQLite ledger."""
    name = sa.make_url(url).database
    return Path(name) if url.startswith("sqlite") and name and not name.startswith((":memory:", "file:")) else None


def _engine(url: str) -> sa.Engine:
    if not url.startswith("sqlite"):
        return sa.create_engine(url, pool_pre_ping=True)
    if file := _file(url):
        file.parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url, connect_args={"timeout": 60})  # seconds to wait for another writer

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _: object) -> None:
        # WAL with synchronous=NORMAL: a killed process loses nothing; a power cut at most the last commits.
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _create(engine: sa.Engine) -> None:
    """Create the table if it is missing, whoever else is doing the same right now."""
    for attempt in range(50):
        try:
            with engine.begin() as connection:
                if engine.dialect.name == "sqlite":
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                if not sa.inspect(connection).has_table(LLM_CALLS.name):
                    connection.execute(CreateTable(LLM_CALLS, if_not_exists=True))
                    connection.execute(CreateIndex(_BY_TIME, if_not_exists=True))
            return
        except sa.exc.DBAPIError as error:
            # PostgreSQL: two at once violate its catalogue. SQLite: switching to WAL does not wait for locks.
            if attempt == 49 or not isinstance(
                error, sa.exc.IntegrityError | sa.exc.ProgrammingError | sa.exc.OperationalError
            ):
                raise
            if isinstance(error, sa.exc.OperationalError) and "lock" not in str(error).lower():
                raise
            time.sleep(0.05)


# SQLite's driver takes these as they are: compiling statements costs more than running them.
_SQLITE_INSERT = str(sqlite.insert(LLM_CALLS).on_conflict_do_nothing().compile(dialect=sqlite.dialect()))
_SQLITE_HITS = (
    f"SELECT {', '.join(column.name for column in _HIT)} FROM llm_calls WHERE key IN (SELECT value FROM json_each(?))"
)


def _hits(connection: sa.Connection, keys: list[str]) -> Iterable[Any]:
    """The stored answers with these keys."""
    if connection.dialect.name == "sqlite":
        return connection.exec_driver_sql(_SQLITE_HITS, (json.dumps(keys),)).fetchall()
    return connection.execute(sa.select(*_HIT).where(LLM_CALLS.c.key.in_(keys)))


def _insert(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Insert the rows whose keys are new."""
    match connection.dialect.name:
        case "sqlite":
            connection.exec_driver_sql(
                _SQLITE_INSERT, [tuple(row[column.name] for column in LLM_CALLS.c) for row in rows]
            )
        case "postgresql":
            # In order of the keys: two writers that insert the same keys must not wait for each other crosswise.
            rows.sort(key=lambda row: row["key"])
            connection.execute(postgresql.insert(LLM_CALLS).on_conflict_do_nothing(), rows)
        case _:
            for row in rows:
                try:
                    with connection.begin_nested():
                        connection.execute(sa.insert(LLM_CALLS), row)
                except sa.exc.IntegrityError:
                    continue


def _row(entry: Entry, now: str) -> dict[str, Any]:
    row = vars(entry) | {"created_at": now}
    if entry.response is not None:  # no database takes these two in a text
        text = entry.response.replace("\x00", "")
        row["response"] = text.encode("utf-8", "replace").decode()
    return row


def _iso(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="microseconds")
