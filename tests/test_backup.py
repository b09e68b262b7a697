"""`deploy/backup.sh` during writes: the copy is consistent and can be used as the index."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest
from click.testing import CliRunner

from graphrag_assets.cli import main
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_database import IndexDatabase
from tests.conftest import SAMPLE_INPUT

ROOT = Path(__file__).resolve().parents[1]


def backup(data: Path, target: Path) -> Path:
    """The folder that the script prints."""
    environment = {
        **os.environ,
        "GRAPHRAG_DATA": str(data),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    command = [str(ROOT / "deploy/backup.sh"), str(target)]
    done = subprocess.run(command, env=environment, cwd=data, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.mark.extended
def test_backup_of_an_index_in_use_is_consistent_and_usable(sample_index, tmp_path, monkeypatch):
    if shutil.which("flock") is None:
        pytest.skip("flock (util-linux) is not installed")
    data = tmp_path / "data"
    shutil.copytree(sample_index.root / "index", data / "index", symlinks=True)
    with sqlite3.connect(data / "index/ledger.sqlite") as ledger:
        ledger.execute("PRAGMA journal_mode = wal")
        ledger.execute("CREATE TABLE IF NOT EXISTS paid (answer TEXT)")
        ledger.execute("INSERT INTO paid VALUES ('kept')")
    working, done = IndexDatabase(data / "index/working.duckdb"), Event()

    def write() -> None:
        """Two tables that agree after every commit."""
        for number in range(100_000):
            if done.is_set():
                return
            with working.transaction() as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS one (n INT); CREATE TABLE IF NOT EXISTS two (n INT)")
                connection.execute(
                    "INSERT INTO one VALUES ($n); INSERT INTO two VALUES ($n)".replace("$n", str(number))
                )

    writer = Thread(target=write)
    writer.start()
    try:
        copies = [backup(data, tmp_path / f"backups-{turn}") for turn in range(3)]
    finally:
        done.set()
        writer.join()
    ledger.close()
    for copy in copies:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}Z", copy.name)
        assert [path.name for path in copy.parent.iterdir()] == [copy.name]  # nothing half done beside it
        counts = IndexDatabase(copy / "working.duckdb").read(
            "SELECT (SELECT list(n ORDER BY n) FROM one) = (SELECT list(n ORDER BY n) FROM two) AS agree"
        )
        assert counts.item()
        with sqlite3.connect(copy / "ledger.sqlite") as ledger:
            assert ledger.execute("SELECT answer FROM paid").fetchall() == [("kept",)]
        ledger.close()

    shutil.rmtree(data / "index")
    shutil.copytree(copies[-1], data / "index", symlinks=True)
    monkeypatch.setenv("GRAPHRAG_DATA", str(data))
    monkeypatch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    result = CliRunner().invoke(main, ["index"])
    assert result.exit_code == 0, result.output
    assert "0 indexed, 4 unchanged" in result.output
    assert "Up to date: publication 1" in result.output
    assert "Valentia" in GraphRAG(data / "index").local("Where did the cable of 1866 begin?").answer
