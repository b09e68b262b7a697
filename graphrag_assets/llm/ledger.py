"""The ledger: every valid answer is stored before it is used, so that nothing is paid for twice.

The table `llm_calls`, in SQLite (WAL) or PostgreSQL, has a format that all versions read; budgets have `llm_spending`.
Its statements run in threads, so that the event loop stays free; an awaited write is on disk. What could not be
written, because the disk is full or the database down, is written before anything else is paid for. Any number of
processes may share a ledger, and may be killed at any moment.
"""

import asyncio
import hashlib
import json
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from graphrag_assets.llm import spending
from graphrag_assets.llm.model_errors import LedgerError
from graphrag_assets.llm.single_flight import SingleFlight
from graphrag_assets.runtime.masking import keep_secret, without_credentials

_metadata = sa.MetaData()
LLM_CALLS = sa.Table(
    "llm_calls",
    _metadata,
    sa.Column("key", sa.String(64), primary_key=True, comment="Hash of all that determines the answer"),
    sa.Column(
        "kind",
        sa.String(16),
        nullable=False,
        comment="chat, embedding, invalid (paid for, not usable; with the reason if a run gave up), replaced, purged",
    ),
    sa.Column("task", sa.String(64), nullable=False),
    sa.Column("provider", sa.String(64), nullable=False),
    sa.Column("model", sa.String(255), nullable=False),
    sa.Column("parameters", sa.Text, nullable=False, comment="JSON"),
    sa.Column("response", sa.Text, comment="The answer's text"),
    sa.Column("vector", sa.LargeBinary, comment="float32, little endian"),
    sa.Column("prompt_tokens", sa.Integer, nullable=False),
    sa.Column(
        "cached_tokens",
        sa.Integer,
        nullable=False,
        server_default="0",
        comment="Of the prompt tokens, those from the provider's prompt cache",
    ),
    sa.Column("completion_tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.Float, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("batch", sa.Text),
    sa.Column("unit", sa.Text),
    sa.Column("run_id", sa.String(64)),
    sa.Column("created_at", sa.String(32), nullable=False, comment="ISO 8601, UTC"),
)
_BY_TIME = sa.Index("llm_calls_created_at", LLM_CALLS.c.created_at)
_ACCOUNTING = [column for column in LLM_CALLS.c if column.name not in ("response", "vector")]
_KEYS_PER_QUERY = 500
_THREADS = 8
REPLY_SECONDS = 120.0
"""The longest wait for the database: SQLite's locks, and PostgreSQL's statements, end sooner by themselves."""
_LOCK_SECONDS = 60
_POSTGRES = {
    "connect_timeout": "10",
    "keepalives_idle": "20",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
    "options": "-c statement_timeout=60s -c lock_timeout=60s",
    "client_encoding": "utf8",
}
"""libpq's parameters where the URL has none.

A database that does not reply, or is cut off, is an error. Without an encoding the driver takes that of the database,
and returns bytes where this is SQL_ASCII, which stores UTF-8 as it is.
"""


Result = TypeVar("Result")


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
    cached_tokens: int = 0
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
    created_at: str


def canonical(value: Any) -> str:
    """JSON in which equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def key_of(*parts: Any) -> str:
    """SHA-256 over the JSON of all that determines an answer."""
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


class _Write(NamedTuple):
    entries: Sequence[Entry] = ()
    replace: bool = False
    settled: spending.Settled | None = None


def _unlogged(future: "asyncio.Future[Result]") -> "asyncio.Future[Result]":
    """The future, whose error asyncio does not log when the caller is gone."""
    future.add_done_callback(lambda done: None if done.cancelled() else done.exception())
    return future


class Ledger:
    """The ledger at a file or an SQLAlchemy URL. Safe to share between threads and event loops.

    `single_flight` are the in-flight calls of all models that share it.
    """

    def __init__(self, where: str | Path):
        url = str(where) if "://" in str(where) else _sqlite_url(Path(where).absolute())
        keep_secret(url)
        self._shown = without_credentials(url)
        self._engine = _engine(url)
        self._created = False
        self._creating = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, "ledger")
        self._writing = threading.Lock()
        self._unwritten = deque[_Write]()  # settlements until the next transaction, and what failed to be written
        self.single_flight = SingleFlight()

    async def get(self, key: str) -> Hit | None:
        """The stored answer, if there is one."""
        return (await self.get_many([key])).get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Hit]:
        """The stored answers by key."""
        return await self._in_thread(self._read, keys)

    async def put(self, *entries: Entry, replace: bool = False) -> None:
        """Store entries; on return they are on disk. The first entry of a key stays, unless `replace`.

        The cost of a replaced answer stays in the ledger, as an entry of kind "replaced".
        """
        await self._in_thread(self._write, _Write(entries, replace))

    async def catch_up(self) -> None:
        """Write what is not written yet. It is called before a request is sent, whose answer could not be stored.

        Raises:
            LedgerError: the database still cannot be used.
        """
        if self._unwritten:
            await self._in_thread(self._write)

    async def reserve(self, key: str, choose: Callable[[float, float], float | None], seconds: float) -> float | None:
        """Reserve money for a call, see `spending.reserve`; settlements before it count."""

        def work() -> float | None:
            self._write()
            with self._transaction() as connection:
                return spending.reserve(connection, _now(connection), key, choose, seconds)

        reserved = _unlogged(asyncio.ensure_future(self._in_thread(work)))
        try:
            return await asyncio.shield(reserved)
        except (asyncio.CancelledError, LedgerError):  # there may be a reservation yet
            reserved.add_done_callback(lambda _: self.settle(0.0, key))
            raise

    def settle(self, usd: float, reservation: str | None) -> None:
        """End a reservation, if there is one, and count what was spent; written by the next transaction."""
        self._unwritten.append(_Write(settled=spending.Settled(usd, reservation)))

    async def _in_thread(self, work: Callable[..., Result], *args: Any) -> Result:
        """The result of `work`, which a canceled caller leaves to be done.

        Raises:
            LedgerError: the database cannot be used, or does not reply in time.
        """
        done = _unlogged(asyncio.get_running_loop().run_in_executor(self._threads, work, *args))
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                return await asyncio.shield(done)
        except TimeoutError:
            raise self._error(TimeoutError(f"no reply in {REPLY_SECONDS:.0f} s")) from None

    def spent_today(self) -> float:
        """US dollars of all calls of this day in UTC."""
        with self._connection() as connection:
            return spending.spent_today(connection, _now(connection))

    def paid_by(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """What runs have paid for, by task: `task, answers, prompt_tokens, cached_tokens, completion_tokens, cost_usd`.

        An answer is that of a chat, or the vector of a text; whether the stage that asked has ended well or not.
        """
        sums = ("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd")
        query = (
            sa.select(LLM_CALLS.c.task, sa.func.count(), *(sa.func.sum(LLM_CALLS.c[name]) for name in sums))
            .where(LLM_CALLS.c.run_id.in_(run_ids))
            .group_by(LLM_CALLS.c.task)
            .order_by(LLM_CALLS.c.task)
        )
        types = {"task": pl.String, "answers": pl.Int64, **dict.fromkeys(sums[:3], pl.Int64), "cost_usd": pl.Float64}
        return pl.DataFrame([tuple(row) for row in self.rows(query)], schema=types, orient="row")

    def frame(self) -> pl.DataFrame:
        """The ledger entries, oldest first: every column of `llm_calls` but the answers themselves."""
        query = sa.select(*_ACCOUNTING).order_by(LLM_CALLS.c.created_at, LLM_CALLS.c.key)
        types = {sa.Integer: pl.Int64, sa.Float: pl.Float64}
        schema = {column.name: types.get(type(column.type), pl.String) for column in _ACCOUNTING}
        return pl.DataFrame([tuple(row) for row in self.rows(query)], schema=schema, orient="row")

    def close(self) -> None:
        """Finish the waiting writes and close the database. The next use opens it again."""
        self._write()
        self._engine.dispose()

    def execute(self, statement: sa.Update, values: Sequence[dict[str, Any]]) -> None:
        """Run a statement for each of the values, all in one transaction."""
        with self._transaction() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete = ON")
            connection.execute(statement, values)

    def forget_failures(self) -> None:
        """Have requests that were given up sent again. What their answers have cost stays."""
        with self._transaction() as connection:
            connection.execute(_FORGOTTEN)

    def shrink(self) -> None:
        """Rewrite the database, in PostgreSQL the table, so that its files have nothing that was deleted."""
        dialect = self._engine.dialect.name
        if dialect not in ("sqlite", "postgresql"):
            return
        with self._connection() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            if dialect == "postgresql":
                connection.detach()  # its settings are not for the next user of a pooled connection
                connection.exec_driver_sql("SET statement_timeout = 0")
                connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {LLM_CALLS.name}")
                connection.exec_driver_sql("VACUUM FULL pg_statistic")  # the planner's samples of answers
                return
            connection.exec_driver_sql("VACUUM")
            ((busy, *_),) = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise self._error(
                TimeoutError("another process is reading it, so deleted data remains in its write-ahead log")
            )

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """The rows of a query."""
        with self._connection() as connection:
            return connection.execute(query).all()

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        """A connection to the database, whose table is created if it is missing.

        Raises:
            LedgerError: the database cannot be used.
        """
        with self._errors(), self._open() as connection:
            yield connection

    def _open(self) -> sa.Connection:
        with self._creating:
            if not self._created:
                _create(self._engine)
                self._created = True
        return self._engine.connect()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            raise self._error(error) from None

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with self._connection() as connection, connection.begin():
            yield connection

    def _write(self, *writes: _Write) -> None:
        """Perform writes, with those that wait, in one transaction; until it ends, these keep waiting."""
        with self._writing, self._errors():
            n_waiting = len(self._unwritten)
            waiting = [self._unwritten[place] for place in range(n_waiting)]
            try:
                if todo := (*waiting, *writes):
                    self._perform(todo)
            except sa.exc.OperationalError:  # no space, no connection, a lock: another attempt may succeed
                n_waiting = 0
                self._unwritten.extend(writes)
                raise
            finally:
                for _ in range(n_waiting):
                    self._unwritten.popleft()

    def _perform(self, writes: Sequence[_Write]) -> None:
        stale = [{"stale": entry.key, "to": uuid.uuid4().hex} for w in writes if w.replace for entry in w.entries]
        with self._open() as connection, connection.begin():
            now = _now(connection)
            if settled := [write.settled for write in writes if write.settled]:
                spending.settle(connection, now, settled)  # first: a new day begins with the entries before it
            if stale:
                connection.execute(_REPLACED, stale)
            if rows := [_row(entry, spending.iso(now)) for write in writes for entry in write.entries]:
                _insert(connection, rows)

    def _read(self, keys: Sequence[str]) -> dict[str, Hit]:
        found: dict[str, Hit] = {}
        with self._connection() as connection:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                rows = connection.execute(_STORED, {"keys": keys[start : start + _KEYS_PER_QUERY]})
                found |= {row[0]: Hit(*row) for row in rows}
        return found

    def _error(self, error: Exception) -> LedgerError:
        cause = str(getattr(error, "orig", None) or error)
        return LedgerError(
            f"The ledger {self._shown} cannot be used: {cause.strip()}. Check GRAPHRAG_LEDGER_URL, that its "
            "database is up, and that its folder is on a local disk with space left."
        )


_STORED = sa.select(*(LLM_CALLS.c[name] for name in Hit._fields)).where(
    LLM_CALLS.c.key.in_(sa.bindparam("keys", expanding=True))
)
_NEW_IN_SQLITE = sqlite.insert(LLM_CALLS).on_conflict_do_nothing()
_NEW_IN_POSTGRES = postgresql.insert(LLM_CALLS).on_conflict_do_nothing()
_REPLACED = (
    sa.update(LLM_CALLS)
    .where(LLM_CALLS.c.key == sa.bindparam("stale"))
    .values(key=sa.bindparam("to"), kind="replaced", response=None, vector=None)
)

# The key is that of no request any more, and still unique: a failure is recorded once at a time.
_FORGOTTEN = (
    sa.update(LLM_CALLS)
    .where(LLM_CALLS.c.kind == "invalid", LLM_CALLS.c.response.is_not(None))
    .values(key=sa.func.substr(LLM_CALLS.c.key, 1, 32).concat(LLM_CALLS.c.created_at), response=None)
)


def _sqlite_url(file: Path) -> str:
    return sa.URL.create("sqlite", database=str(file)).render_as_string()


def _file(url: str) -> Path | None:
    name = sa.make_url(url).database
    return Path(name) if url.startswith("sqlite") and name and not name.startswith((":memory:", "file:")) else None


def _engine(url: str) -> sa.Engine:
    if not url.startswith("sqlite"):
        parts = sa.make_url(url)
        limits = _POSTGRES if parts.get_driver_name() in ("psycopg", "psycopg2") else {}
        unset = {name: value for name, value in limits.items() if name not in parts.query}
        return sa.create_engine(url, pool_pre_ping=True, connect_args=unset)
    if file := _file(url):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)  # SQLite gives its other files the same mode
    engine = sa.create_engine(url, connect_args={"timeout": _LOCK_SECONDS})  # to wait for another writer

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _: object) -> None:
        # WAL with synchronous=NORMAL: a killed process loses nothing; a power cut at most the last commits.
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _create(engine: sa.Engine) -> None:
    """Create the tables if they are missing; other processes may do so at the same time."""
    for attempt in range(50):
        try:
            with engine.begin() as connection:
                if engine.dialect.name == "sqlite":
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                for table in (LLM_CALLS, spending.LLM_SPENDING):
                    if not sa.inspect(connection).has_table(table.name):
                        connection.execute(CreateTable(table, if_not_exists=True))
                        for index in table.indexes:
                            connection.execute(CreateIndex(index, if_not_exists=True))
            return
        except sa.exc.DBAPIError as error:
            # PostgreSQL: concurrent creation violates its catalog. SQLite: switching to WAL does not wait for locks.
            if attempt == 49 or not isinstance(
                error, sa.exc.IntegrityError | sa.exc.ProgrammingError | sa.exc.OperationalError
            ):
                raise
            if isinstance(error, sa.exc.OperationalError) and "lock" not in str(error).lower():
                raise
            time.sleep(0.05)


def _insert(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Insert the rows whose keys are new, in order of the keys: two writers of the same keys do not deadlock."""
    new = _NEW_IN_POSTGRES if connection.dialect.name == "postgresql" else _NEW_IN_SQLITE
    connection.execute(new, sorted(rows, key=lambda row: row["key"]))


def _row(entry: Entry, now: str) -> dict[str, Any]:
    row = vars(entry) | {"created_at": now}
    if entry.response is not None:  # no database accepts these two in a text
        text = entry.response.replace("\x00", "")
        row["response"] = text.encode("utf-8", "replace").decode()
    return row


def _now(connection: sa.Connection) -> datetime:
    """The time. In PostgreSQL it is the server's: the clocks of the machines that share the ledger may differ."""
    if connection.dialect.name != "postgresql":
        return datetime.now(UTC)
    now: datetime = connection.execute(sa.select(sa.func.current_timestamp())).scalar_one()
    return now.astimezone(UTC)
