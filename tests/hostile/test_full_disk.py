"""A disk that is full at each stage: the message says so, and with more space the next run gives the index of always."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_assets.errors import DiskFullError, masked_errors
from graphrag_assets.indexing.checks import failed_blocking_checks
from graphrag_assets.store import schema
from tests.conftest import Project

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")
DOCUMENTS = {
    "a/one.txt": "Captain James Anderson commanded the Great Eastern. Cyrus Field sailed with Samuel Canning to Newfoundland.",
    "b/two.txt": "William Thomson read the signals. Cyrus Field met William Thomson in Valentia.",
}
TABLES = [table.name for table in schema.GLOBAL_TABLES if table.name != "community_history"]


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize(folder: Path, kilobytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", str(folder)], check=True)


def test_a_disk_that_is_full_at_any_stage_is_named_and_nothing_is_lost(start_with, tmp_path, monkeypatch):
    expected = start_with(DOCUMENTS)
    disk, said, stages = tmp_path / "disk", [], set()
    with small_disk(disk):
        monkeypatch.setenv("GRAPHRAG_DATA", str(disk))
        monkeypatch.setenv("GRAPHRAG_INPUT", str(expected.input))
        project = Project(disk, expected.instance)
        for kilobytes in (8, 50, 100, 200, 400, 800, 1600, 3200, 100_000):  # free ones
            resize(disk, shutil.disk_usage(disk).used // 1024 + kilobytes)
            try:
                with masked_errors():
                    stages |= set(project.index.working.read("SELECT stage FROM index_runs")["stage"])
                    project.index_all()
            except DiskFullError as error:
                said.append(str(error))
        assert len(said) >= 3
        assert all("The disk is full. Free space and run again" in line for line in said)
        assert "index_batch" in stages  # what was committed has stayed
        assert failed_blocking_checks(project.index) == []
        for name in TABLES:
            query = f"SELECT * FROM {name} ORDER BY ALL"
            assert project.index.working.read(query).equals(expected.index.working.read(query)), name
        assert project.sql("SELECT count(*) FROM documents") == [(2,)]
        assert not [path for path in (disk / "index" / "drafts").iterdir() if path.is_dir()]
