"""What the processes that share a ledger have spent today, and have reserved for calls in flight.

The table `llm_spending` has a row per day, and one per reservation. A reservation and a settlement are transactions in
which no other process reserves, so that all processes together keep a budget. The reservation of a killed process ends
when its call would have timed out.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

LLM_SPENDING = sa.Table(
    "llm_spending",
    sa.MetaData(),
    sa.Column("key", sa.String(32), primary_key=True, comment="A day in UTC, or a reservation"),
    sa.Column("usd", sa.Float, nullable=False),
    sa.Column("until", sa.String(32), nullable=False, comment="When the row no longer counts, ISO 8601, UTC"),
)
_ROW = LLM_SPENDING.c
_CALLS = sa.table("llm_calls", sa.column("cost_usd"), sa.column("created_at"))
_LOCK = 4_116_274_859
"""The number of an advisory lock of PostgreSQL."""


class Settled(NamedTuple):
    """What a call cost, and the reservation that this ends, if any."""

    usd: float
    reservation: str | None


def reserve(
    connection: sa.Connection,
    now: datetime,
    key: str,
    choose: Callable[[float, float], float | None],
    seconds: float,
) -> float | None:
    """Reserve the US dollars that `choose` returns, None for nothing yet, given those spent today and those reserved.

    The reservation ends after so many seconds at the latest. What `choose` raises is raised.
    """
    day = _today(connection, now)
    spent = _total(connection, _ROW.key == day)
    amount = choose(spent, _total(connection, _ROW.key != day))
    if amount is not None:
        row = {"key": key, "usd": amount, "until": iso(now + timedelta(seconds=seconds))}
        connection.execute(sa.insert(LLM_SPENDING), row)
    return amount


def settle(connection: sa.Connection, now: datetime, settled: Sequence[Settled]) -> None:
    """End reservations, and add what was spent."""
    day = _today(connection, now)
    ended = [{"ended": one.reservation} for one in settled if one.reservation]
    if ended:
        connection.execute(sa.delete(LLM_SPENDING).where(_ROW.key == sa.bindparam("ended")), ended)
    connection.execute(
        sa.update(LLM_SPENDING).where(_ROW.key == day).values(usd=_ROW.usd + sum(one.usd for one in settled))
    )


def spent_today(connection: sa.Connection, now: datetime) -> float:
    """US dollars of all stored calls of the day."""
    total = sa.func.coalesce(sa.func.sum(_CALLS.c.cost_usd), 0.0)
    return float(connection.scalar(sa.select(total).where(_CALLS.c.created_at >= iso(_midnight(now)))) or 0.0)


def iso(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="microseconds")


def _today(connection: sa.Connection, now: datetime) -> str:
    """The key of the day, which has a row; until the end of the transaction no other process reserves or settles."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    connection.execute(sa.delete(LLM_SPENDING).where(_ROW.until <= iso(now)))  # locks SQLite's file
    day = now.date().isoformat()
    if connection.scalar(sa.select(_ROW.key).where(_ROW.key == day)) is None:
        until = iso(_midnight(now) + timedelta(days=1))
        row = {"key": day, "usd": spent_today(connection, now), "until": until}
        connection.execute(sa.insert(LLM_SPENDING), row)
    return day


def _total(connection: sa.Connection, which: sa.ColumnElement[bool]) -> float:
    return float(connection.scalar(sa.select(sa.func.sum(_ROW.usd)).where(which)) or 0.0)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
