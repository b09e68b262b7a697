"""Signals at awkward moments: the command ends with the signal's status, and says what is done."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.publish import publish_records
from graphrag_assets.received_signals import raise_if_interrupted, signals_noted
from graphrag_assets.store.publication_files import current_number
from graphrag_assets.store.working import WorkingDatabase
from tests.openai_server import running


@pytest.mark.extended
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_batch_ends_the_command_with_its_status(tmp_path: Path, sent: signal.Signals) -> None:
    for name in ("one", "two"):
        (tmp_path / "input" / name).mkdir(parents=True)
        (tmp_path / "input" / name / "a.md").write_text(f"Cyrus Field met {name.title()} Thomson in Valentia.")
    with running(latency=0.0) as server:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHRAG_")}
        environment |= {
            "GRAPHRAG_DATA": str(tmp_path),
            "GRAPHRAG_CHAT_MODEL": "openai/test-chat",
            "GRAPHRAG_CHAT_BASE_URL": server.url,
            "DAGSTER_HOME": "",
            "COLUMNS": "200",
        }
        command = [sys.executable, "-m", "graphrag_assets", "index"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes) as process:
            wait_until(lambda: len(server.chats) >= 2 or process.poll() is not None)  # batch one is asked for
            server.latency = 60.0
            wait_until(lambda: server.in_flight > 0 or process.poll() is not None)
            began = time.monotonic()
            process.send_signal(sent)
            output, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + sent, output
    assert time.monotonic() - began < 30  # five seconds where nothing else runs
    assert "of 2 batches are indexed, nothing new is published." in output
    assert "Interrupted. What was committed stays" in output
    assert current_number(tmp_path / "index") is None


def wait_until(done) -> None:
    deadline = time.monotonic() + 60
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)


def test_a_signal_that_a_library_drops_still_interrupts() -> None:
    with signals_noted() as signals:
        before = signal.signal(signal.SIGTERM, lambda *_: None)  # as Dagster between two steps
        os.kill(os.getpid(), signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)
        assert signals is not None
        assert signals.first == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            raise_if_interrupted()
    raise_if_interrupted()  # noted no more


def aborted(connection: duckdb.DuckDBPyConnection) -> None:
    """A statement fails as a signal makes it fail, its error is swallowed, and the next one complains."""
    try:
        raise RuntimeError("Query interrupted")
    except RuntimeError:
        try:
            connection.execute("FROM no_such_table")
        except duckdb.CatalogException:
            connection.execute("SELECT 1")


def test_an_aborted_transaction_after_a_signal_is_an_interrupt(tmp_path: Path) -> None:
    working = WorkingDatabase(tmp_path / "working.duckdb")
    with pytest.raises(KeyboardInterrupt), working.transaction() as connection:
        aborted(connection)
    assert working.read("SELECT 1 AS n").item() == 1


def interrupted_without_transaction(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("ROLLBACK")  # so that the next one fails
    raise KeyboardInterrupt


def test_an_interrupt_whose_rollback_fails_stays_an_interrupt(tmp_path: Path) -> None:
    working = WorkingDatabase(tmp_path / "working.duckdb")
    with pytest.raises(KeyboardInterrupt), working.transaction() as connection:
        interrupted_without_transaction(connection)
    assert working.read("SELECT 1 AS n").item() == 1


@pytest.mark.long
def test_records_that_cannot_be_written_hide_neither_a_publication_nor_an_interrupt(project, caplog) -> None:
    project.write("one/a.md", "Cyrus Field met William Thomson in Valentia.")
    (project.root / "index" / "records.duckdb" / "in the way").mkdir(parents=True)
    project.index_all()
    assert current_number(project.root / "index") == 1
    with pytest.raises(KeyboardInterrupt):
        interrupted_run(project.index)
    assert caplog.text.count("The records of runs and of model calls are not shown to readers yet") == 2


def interrupted_run(index: Index) -> None:
    try:
        raise KeyboardInterrupt
    finally:
        publish_records(index)
