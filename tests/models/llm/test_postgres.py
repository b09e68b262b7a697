"""The ledger on PostgreSQL, with a cluster of its own started from Debian's packages."""

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from graphrag_assets.models.llm.ledger import Ledger
from tests.models.llm.conftest import Extraction, Lab, ask, gather, run
from tests.models.llm.test_ledger import entry
from tests.openai_server import OpenAIServer


def programs() -> Path | None:
    """The folder of initdb and pg_ctl."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


def as_postgres(*command: str | Path) -> None:
    """Run a program of PostgreSQL, which refuses to be root."""
    user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd="/", **user)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """URL of an empty database, reached by a socket in its own folder."""
    pytest.importorskip("psycopg", reason="the driver psycopg is not installed")
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL (initdb) is not installed: apt-get install postgresql")
    if os.geteuid() == 0 and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        pytest.skip("there is no user postgres to run PostgreSQL as")
    home = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has at most 107 characters
    try:
        if os.geteuid() == 0:
            shutil.chown(home, "postgres", "postgres")
        options = f"-c listen_addresses='' -k {home} -c fsync=off"
        as_postgres(folder / "initdb", "-D", home / "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        as_postgres(folder / "pg_ctl", "-D", home / "data", "-l", home / "log", "-w", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://postgres@/postgres?host={home}"
        finally:
            as_postgres(folder / "pg_ctl", "-D", home / "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_it_keeps_answers_vectors_and_books(postgres: str) -> None:
    ledger = Ledger(postgres)
    run(ledger.put(entry("a", response="A\x00da 😀", cost_usd=0.5), entry("b", vector=b"\0\0\x80?", kind="embedding")))
    run(ledger.put(entry("a", response="second")))

    other = Ledger(postgres)
    assert run(other.get("a")).response == "Ada 😀"
    assert run(other.get("b")).vector == b"\0\0\x80?"
    assert other.lookup_many(["a", "c"]) == {"a"}
    assert other.spent_today() == 0.5
    assert set(other.frame()["kind"]) == {"chat", "embedding"}
    ledger.close()
    other.close()


def test_many_ledgers_create_the_table_and_write_the_same_rows_at_once(postgres: str) -> None:
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


def test_models_work_with_it(postgres: str, openai_server: OpenAIServer, tmp_path: Path) -> None:
    lab = Lab(openai_server, tmp_path)
    lab.ledger = Ledger(postgres)
    requests = [ask(f"Ada wrote {n}.", model=Extraction) for n in range(20)]
    first = run(gather(lab.chat().complete, *requests))
    vectors = run(lab.embedding().embed(["Ada"]))
    again = run(gather(lab.chat().complete, *requests))
    assert [answer.text for answer in first] == [answer.text for answer in again]
    assert (run(lab.embedding().embed(["Ada"])) == vectors).all()
    assert len(openai_server.requests) == 21
    lab.ledger.close()


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
