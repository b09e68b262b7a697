"""Claims: of the processes that share a ledger in PostgreSQL, one requests an answer, and the others wait for it.

A claim is an advisory lock of a session. PostgreSQL releases it when the process ends or its connection breaks. A
process that is stopped, or hangs, keeps its claims: they are passed over when no process has stored an answer for as
long as one call may take. A ledger in SQLite needs no claims: its processes are on one machine, where a batch has a
lock.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import sqlalchemy as sa

from graphrag_assets.ids import stable_id

WAIT_SECONDS = 0.5
"""How often a waiting process looks whether it has the claim."""
log = logging.getLogger(__name__)
_KEEPALIVE = ("SET tcp_keepalives_idle = 20", "SET tcp_keepalives_interval = 5", "SET tcp_keepalives_count = 4")
"""So that the server ends the session of a machine that is cut off after 40 seconds, not after two hours."""


class Claims:
    """The claims of this process, all in one session of the database; `newest` changes with each stored answer."""

    def __init__(self, engine: sa.Engine, newest: Callable[[], object]) -> None:
        self._engine = engine
        self._newest = newest
        self._connection: sa.Connection | None = None
        self._using = threading.Lock()

    @asynccontextmanager
    async def claim(self, key: str, patience: float) -> AsyncIterator[None]:
        """Wait until no other process has claimed `key`, then have the claim.

        It is passed over, with a warning, when no process has stored any answer for `patience` seconds. Then, or when
        a connection breaks, which loses its claims, two processes may request one answer, of which the first is kept.
        """
        if self._engine.dialect.name != "postgresql":
            yield
            return
        number = int(stable_id(key)[:16], 16) - 2**63
        since, newest = 0.0, list[object]()  # no answer looked for yet
        while not await asyncio.to_thread(self._call, "pg_try_advisory_lock", number):
            if time.monotonic() - since > patience or not newest:
                since, before, newest = time.monotonic(), newest, [await asyncio.to_thread(self._newest)]
                if newest == before:
                    log.warning(
                        "Another process has claimed an answer, and no process has stored one for %.0f s. It seems to "
                        "hang: the answer is requested here.",
                        patience,
                    )
                    yield
                    return
            await asyncio.sleep(WAIT_SECONDS)
        try:
            yield
        finally:
            with suppress(sa.exc.SQLAlchemyError):  # a broken connection has released it
                await asyncio.shield(asyncio.to_thread(self._call, "pg_advisory_unlock", number))

    def close(self) -> None:
        """Release all claims."""
        with self._using:
            self._discard()

    def _call(self, function: str, number: int) -> bool:
        with self._using:
            try:
                if self._connection is None:
                    self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                    for statement in _KEEPALIVE:
                        self._connection.exec_driver_sql(statement)
                return bool(self._connection.scalar(sa.select(getattr(sa.func, function)(number))))
            except sa.exc.SQLAlchemyError:
                self._discard()
                raise

    def _discard(self) -> None:
        if self._connection is not None:
            with suppress(sa.exc.SQLAlchemyError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None
