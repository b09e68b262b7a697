"""A disk that is full at each stage: the message says so, and with more space the next run gives the index of always."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.errors import DiskFullError
from graphrag_assets.store import schema
from tests.conftest import IndexFolder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")
DOCUMENTS = {
    "a/one.txt": "Captain James Anderson commanded the Great Eastern. Cyrus Field sailed with Samuel Canning to Newfoundland.",
    "b/two.txt": "William Thomson read the signals. Cyrus Field met William Thomson in Valentia.",
}
FREE = (8, 50, 100, 200, 400, 600, 800, 1200, 1600, 2400, 3200, 100_000)
"""Kilobytes that each run finds free."""
FULL = re.compile(
    r"The disk is full: (scan_input|index_batch of '[ab]'|knowledge_graph|detect_communities|write_community_reports"
    r"|embed_texts|publication) could not write\. Free space and run again: what was committed stays"
)
TABLES = [table.name for table in schema.GLOBAL_TABLES]


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


@pytest.mark.extended
def test_a_disk_that_is_full_at_any_stage_is_named_and_nothing_is_lost(start_with, tmp_path, monkeypatch):
    expected = start_with(DOCUMENTS)
    disk, said = tmp_path / "disk", []
    with small_disk(disk):
        monkeypatch.setenv("GRAPHRAG_DATA", str(disk))
        monkeypatch.setenv("GRAPHRAG_INPUT", str(expected.input))
        project = IndexFolder(disk)
        for kilobytes in FREE:
            resize(disk, shutil.disk_usage(disk).used // 1024 + kilobytes)
            try:
                project.index_all()
            except DiskFullError as error:
                said.append(str(error))
        assert len(said) >= 3
        assert all(FULL.match(line) for line in said), said
        assert len({FULL.match(line)[1] for line in said}) >= 3, said
        assert failed_blocking_checks(project.index) == []
        for name in TABLES:
            query = f"SELECT * FROM {name} ORDER BY ALL"
            assert project.index.working.read(query).equals(expected.index.working.read(query)), name
        assert project.sql("SELECT count(*) FROM documents") == [(2,)]
        assert not list((disk / "index").rglob(".draft-*"))
