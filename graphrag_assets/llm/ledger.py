"""The ledger: every valid answer is stored before it is used, so that nothing is paid for twice.

The table `llm_calls`, in SQLite (WAL) or PostgreSQL, has a format that all versions read. Any number of processes may
share it, and may be killed at any moment: an awaited write is on disk.
"""

import asyncio
import hashlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from graphrag_assets.llm.limits import SingleFlight
from graphrag_assets.llm.model_errors import LedgerError
from graphrag_assets.runtime.outgoing import keep_secret, without_credentials

LLM_CALLS = sa.Table(
    "llm_calls",
    sa.MetaData(),
    sa.Column("key", sa.String(64), primary_key=True, comment="Hash of all that determines the answer"),
    sa.Column("kind", sa.String(16), nullable=False, comment="chat, embedding, invalid, replaced, purged"),
    sa.Column("task", sa.String(64), nullable=False),
    sa.Column("provider", sa.String(64), nullable=False),
    sa.Column("model", sa.String(255), nullable=False),
    sa.Column("parameters", sa.Text, nullable=False, comment="JSON"),
    sa.Column("response", sa.Text, comment="The answer's text"),
    sa.Column("vector", sa.LargeBinary, comment="float32, little endian"),
    sa.Column("prompt_tokens", sa.Integer, nullable=False),
    sa.Column("cached_tokens", sa.Integer, nullable=False, server_default="0", comment="Of the prompt tokens"),
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
"""libpq's parameters where the URL has none: a database that does not reply is an error; text is UTF-8, not bytes."""
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


_STORED = sa.select(*(LLM_CALLS.c[name] for name in Hit._fields)).where(
    LLM_CALLS.c.key.in_(sa.bindparam("keys", expanding=True))
)
_NEW = {module.dialect.name: module.insert(LLM_CALLS).on_conflict_do_nothing() for module in (sqlite, postgresql)}
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


def canonical(value: Any) -> str:
    """JSON in which equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def key_of(*parts: Any) -> str:
    """SHA-256 over the JSON of all that determines an answer."""
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


class Ledger:
    """The ledger at a file or an SQLAlchemy URL, for all threads and event loops. Its methods raise LedgerError."""

    def __init__(self, where: str | Path):
        path = Path(where).absolute()
        url = str(where) if "://" in str(where) else sa.URL.create("sqlite", database=str(path)).render_as_string()
        keep_secret(url)
        self._shown = without_credentials(url)
        self._engine = _engine(url)
        self._created = False
        self._creating, self._storing = threading.Lock(), threading.Lock()
        self.unstored: list[tuple[Sequence[Entry], bool]] = []  # what a full disk or a lost database has left
        self.single_flight = SingleFlight()  # of all models that share the ledger

    async def get(self, key: str) -> Hit | None:
        """Return the stored answer, if there is one."""
        return (await self.get_many([key])).get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Hit]:
        """Return the stored answers by key."""
        return await _in_thread(self._read, keys)

    async def put(self, *entries: Entry, replace: bool = False) -> None:
        """Store entries, and what could not be stored before; on return they are on disk.

        The first entry of a key stays, or with `replace` its cost.
        """
        await _in_thread(self._store, entries, replace)

    def spent_today(self) -> float:
        """US dollars of all calls of this day in UTC."""
        total = sa.func.coalesce(sa.func.sum(LLM_CALLS.c.cost_usd), 0.0)
        with self._connection() as connection:
            today = LLM_CALLS.c.created_at >= _now(connection)[:10]
            return float(connection.scalar(sa.select(total).where(today)) or 0.0)

    def paid_by(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """Return what runs have paid for, by task: answers (vectors, too), tokens and cost."""
        sums = pl.col("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd").sum()
        paid = self.frame(LLM_CALLS.c.run_id.in_(run_ids)).group_by("task")
        return paid.agg(pl.len().cast(pl.Int64).alias("answers"), sums).sort("task")

    def frame(self, where: sa.ColumnElement[bool] | None = None) -> pl.DataFrame:
        """Return the ledger entries, oldest first: every column of `llm_calls` but the answers themselves."""
        query = sa.select(*_ACCOUNTING).order_by(LLM_CALLS.c.created_at, LLM_CALLS.c.key)
        types = {sa.Integer: pl.Int64, sa.Float: pl.Float64}
        schema = {column.name: types.get(type(column.type), pl.String) for column in _ACCOUNTING}
        rows = self.rows(query if where is None else query.where(where))
        return pl.DataFrame([tuple(row) for row in rows], schema=schema, orient="row")

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """Return the rows of a query."""
        with self._connection() as connection:
            return connection.execute(query).all()

    def execute(self, statement: sa.Update, values: Sequence[dict[str, Any]]) -> None:
        """Run a statement for each of the values, all in one transaction."""
        with self._connection() as connection, connection.begin():
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete = ON")
            connection.execute(statement, values)

    def forget_failures(self) -> None:
        """Have requests that were given up sent again. What their answers have cost stays."""
        with self._connection() as connection, connection.begin():
            connection.execute(_FORGOTTEN)

    def shrink(self) -> None:
        """Rewrite the database, in PostgreSQL the table, so that its files have nothing that was deleted."""
        with self._connection() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            if connection.dialect.name == "postgresql":
                connection.detach()  # its settings are not for the next user of a pooled connection
                connection.exec_driver_sql("SET statement_timeout = 0")
                connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {LLM_CALLS.name}")
                connection.exec_driver_sql("VACUUM FULL pg_statistic")  # the planner's samples of answers
                return
            connection.exec_driver_sql("VACUUM")
            ((busy, *_),) = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise self._error("another process is reading it, so deleted data remains in its write-ahead log")

    def close(self) -> None:
        """Close the database. The next use opens it again."""
        if self.unstored:
            self._store()
        self._engine.dispose()

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        """Yield a connection to the database, whose table is created if it is missing."""
        try:
            with self._creating:
                if not self._created:
                    _create(self._engine)
                    self._created = True
            with self._engine.connect() as connection:
                yield connection
        except sa.exc.SQLAlchemyError as error:
            # No space, no connection or a lock may pass; other errors are those of the statement.
            may_pass = isinstance(error, sa.exc.OperationalError)
            raise self._error(str(getattr(error, "orig", None) or error).strip(), may_pass) from None

    def _store(self, entries: Sequence[Entry] = (), replace: bool = False) -> None:
        """Store entries, and before them those that could not be stored, in one transaction.

        They are in order of the keys: two writers of the same keys do not deadlock.
        """
        with self._storing:
            waiting = [*self.unstored, (entries, replace)]
            try:
                with self._connection() as connection, connection.begin():
                    now = _now(connection)
                    for group, replaces in filter(lambda one: one[0], waiting):
                        rows = [_row(entry, now) for entry in sorted(group, key=lambda entry: entry.key)]
                        if replaces:
                            connection.execute(_REPLACED, [{"stale": r["key"], "to": uuid.uuid4().hex} for r in rows])
                        connection.execute(_NEW[connection.dialect.name], rows)
            except LedgerError as error:
                if error.may_pass:
                    self.unstored = waiting
                raise
            self.unstored = []

    def _read(self, keys: Sequence[str]) -> dict[str, Hit]:
        hits: dict[str, Hit] = {}
        with self._connection() as connection:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                rows = connection.execute(_STORED, {"keys": keys[start : start + _KEYS_PER_QUERY]})
                hits |= {row[0]: Hit(*row) for row in rows}
        return hits

    def _error(self, cause: str, may_pass: bool = False) -> LedgerError:
        return LedgerError(
            f"The ledger {self._shown} cannot be used: {cause}. Check GRAPHRAG_LEDGER_URL, that its database is up, "
            "and that its folder is on a local disk with space left.",
            may_pass,
        )


async def _in_thread(work: Callable[..., Result], *args: Any) -> Result:
    """Return the result of `work`, which is done even if its caller is canceled."""
    return await asyncio.shield(asyncio.to_thread(work, *args))


def _engine(url: str) -> sa.Engine:
    parts = sa.make_url(url)
    if parts.get_backend_name() != "sqlite":
        limits = _POSTGRES if parts.get_driver_name() in ("psycopg", "psycopg2") else {}
        unset = {name: value for name, value in limits.items() if name not in parts.query}
        return sa.create_engine(url, pool_pre_ping=True, connect_args=unset)
    if parts.database and not parts.database.startswith((":memory:", "file:")):
        Path(parts.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(parts.database).touch(mode=0o600)  # SQLite gives its other files the same mode
    engine = sa.create_engine(url, connect_args={"timeout": _LOCK_SECONDS})  # to wait for another writer

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _: object) -> None:
        # WAL with synchronous=NORMAL: a killed process loses nothing; a power cut at most the last commits.
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _create(engine: sa.Engine) -> None:
    """Create the table if it is missing; other processes may do so at the same time."""
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
            # PostgreSQL: concurrent creation violates its catalog. SQLite: switching to WAL does not wait for locks.
            passes = isinstance(error, sa.exc.IntegrityError | sa.exc.ProgrammingError) or "lock" in str(error).lower()
            if attempt == 49 or not passes:
                raise
            time.sleep(0.05)


def _row(entry: Entry, now: str) -> dict[str, Any]:
    row = vars(entry) | {"created_at": now}
    if entry.response is not None:  # no database accepts these two in a text
        row["response"] = entry.response.replace("\x00", "").encode("utf-8", "replace").decode()
    return row


def _now(connection: sa.Connection) -> str:
    """Return the time, ISO 8601. In PostgreSQL it is the server's: the clocks of machines that share a ledger may
    differ.
    """
    now = datetime.now(UTC)
    if connection.dialect.name == "postgresql":
        now = connection.execute(sa.select(sa.func.current_timestamp())).scalar_one().astimezone(UTC)
    return now.isoformat(timespec="microseconds")
