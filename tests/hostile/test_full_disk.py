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
from graphrag_assets.errors import DiskFullError, masked_errors
from graphrag_assets.store import schema
from tests.assets.test_language_models import use
from tests.conftest import IndexFolder
from tests.openai_content import content_for
from tests.openai_server import running

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


def fill(folder: Path) -> None:
    """Leave no room. What is written between the look and the change of size makes it fail: look again."""
    for _ in range(100):
        with contextlib.suppress(subprocess.CalledProcessError):
            resize(folder, shutil.disk_usage(folder).used // 1024)
            return
    raise AssertionError("The disk was never filled.")


def committed(project: IndexFolder) -> set[str]:
    """The stages that have committed; none while the disk is too full even to look."""
    with contextlib.suppress(DiskFullError), masked_errors():
        return set(project.index.working.read("SELECT stage FROM index_runs")["stage"])
    return set()


@pytest.mark.extended
def test_a_disk_that_is_full_at_any_stage_is_named_and_nothing_is_lost(start_with, tmp_path, monkeypatch):
    expected = start_with(DOCUMENTS)
    disk, said, stages = tmp_path / "disk", [], set()
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
                stages |= committed(project)
        assert len(said) >= 3
        assert all(FULL.match(line) for line in said), said
        assert len({FULL.match(line)[1] for line in said}) >= 3, said
        assert "index_batch" in stages  # what was committed before a disk was full
        assert failed_blocking_checks(project.index) == []
        for name in TABLES:
            query = f"SELECT * FROM {name} ORDER BY ALL"
            assert project.index.working.read(query).equals(expected.index.working.read(query)), name
        assert project.sql("SELECT count(*) FROM documents") == [(2,)]
        assert not list((disk / "index").rglob(".draft-*"))


@pytest.mark.long
def test_no_paid_answer_is_lost_when_the_disk_is_full(project, tmp_path, monkeypatch):
    """Answers that the full disk did not take are kept, and stored before the next request of this process."""
    disk, said, asked = tmp_path / "disk", [], []

    def fill_disk(body):
        asked.append(body)
        if len(asked) == 6:
            fill(disk)
        return content_for(body)

    with small_disk(disk), running(content=fill_disk) as server:
        use(monkeypatch, server)
        monkeypatch.setenv("GRAPHRAG_DATA", str(disk))
        monkeypatch.setenv("GRAPHRAG_INPUT", str(project.input))
        monkeypatch.setenv("GRAPHRAG_CONCURRENCY", "2")
        for name in ("Cyrus Field", "William Thomson", "Samuel Canning", "Robert Halpin", "Daniel Gooch"):
            project.write(f"a/{name}.txt", f"{name} sailed with the Great Eastern to Newfoundland.")
        indexing = IndexFolder(disk)
        for kilobytes in (100_000, 50, 400, 1600, 100_000):
            resize(disk, shutil.disk_usage(disk).used // 1024 + kilobytes)
            try:
                indexing.index_all()
            except DiskFullError as error:
                said.append(str(error))
        assert "The ledger" in said[0]
        assert all(FULL.match(line) for line in said), said
        sent = [str(request.body) for request in server.requests]
        assert len(sent) == len(set(sent))
        assert failed_blocking_checks(indexing.index) == []
        assert indexing.sql("SELECT count(*) FROM documents") == [(5,)]
