"""The ledger on PostgreSQL, in a new cluster started from Debian's packages."""

import asyncio
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from graphrag_assets.llm.ledger import Ledger
from tests.llm.conftest import run
from tests.llm.test_ledger import entry
from tests.postgres import cluster


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """URL of an empty database, reached by a socket in its own folder."""
    pytest.importorskip("psycopg", reason="the driver psycopg is not installed")
    with cluster() as home:
        yield f"postgresql+psycopg://postgres@/postgres?host={home}"


def test_ledger_keeps_answers_vectors_and_accounting(postgres: str) -> None:
    ledger = Ledger(postgres)
    run(ledger.put(entry("a", response="A\x00da 😀", cost_usd=0.5), entry("b", vector=b"\0\0\x80?", kind="embedding")))
    run(ledger.put(entry("a", response="second")))

    other = Ledger(postgres)
    assert run(other.get("a")).response == "Ada 😀"
    assert run(other.get("b")).vector == b"\0\0\x80?"
    assert set(run(other.get_many(["a", "c"]))) == {"a"}
    assert other.spent_today() == 0.5
    assert set(other.frame()["kind"]) == {"chat", "embedding"}
    ledger.close()
    other.close()


def test_many_ledgers_create_the_table_and_write_the_same_rows_concurrently(postgres: str) -> None:
    engine = sa.create_engine(postgres)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS llm_calls"))
    engine.dispose()
    ledgers = [Ledger(postgres) for _ in range(6)]

    async def all_at_once() -> None:
        await asyncio.gather(
            *(
                ledger.put(*(entry(f"{n}", response="x") for n in order))
                for ledger in ledgers
                for order in (range(40), range(39, -1, -1))
            )
        )

    run(all_at_once())
    assert ledgers[0].frame().height == 40
    for ledger in ledgers:
        ledger.close()


def test_a_server_that_dropped_the_connection_is_connected_again(postgres: str) -> None:
    ledger = Ledger(postgres)
    run(ledger.put(entry("kept", response="Ada")))
    engine = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(
            sa.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'postgres'"
            )
        )
    engine.dispose()
    assert run(ledger.get("kept")).response == "Ada"
    ledger.close()
