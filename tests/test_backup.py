"""`deploy/backup.sh` during writes: the copy is consistent and can be used as the index."""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from graphrag_assets.store.index_database import IndexDatabase
from tests.cli import run_command
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
    with contextlib.closing(sqlite3.connect(data / "index/ledger.sqlite")) as ledger, ledger:
        ledger.execute("CREATE TABLE paid (answer TEXT)")
        ledger.execute("INSERT INTO paid VALUES ('kept')")
    working, done = IndexDatabase(data / "index/working.duckdb"), Event()

    def write() -> None:
        """Two tables that agree after every commit."""
        while not done.is_set():
            with working.transaction() as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS one (n INT); CREATE TABLE IF NOT EXISTS two (n INT)")
                connection.execute("INSERT INTO one VALUES (1); INSERT INTO two VALUES (1)")

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            copies = [backup(data, tmp_path / f"backups-{turn}") for turn in range(3)]
        finally:
            done.set()
        writing.result()
    for copy in copies:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}Z", copy.name)
        assert [path.name for path in copy.parent.iterdir()] == [copy.name]  # nothing half done beside it
        query = "SELECT (SELECT count(*) FROM one) AS n, (SELECT count(*) FROM two) AS other"
        assert len(set(IndexDatabase(copy / "working.duckdb").read(query).row(0))) == 1
        with contextlib.closing(sqlite3.connect(copy / "ledger.sqlite")) as ledger:
            assert ledger.execute("SELECT answer FROM paid").fetchall() == [("kept",)]
    shutil.rmtree(data / "index")
    shutil.copytree(copies[-1], data / "index", symlinks=True)
    monkeypatch.setenv("GRAPHRAG_DATA", str(data))
    monkeypatch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))
    printed = run_command("index")
    assert "0 indexed, 4 unchanged" in printed
    assert "Up to date: publication 1" in printed
