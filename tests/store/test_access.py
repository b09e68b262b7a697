"""An index that another user owns, or that cannot be written: one sentence that names the file, or it is read."""

import asyncio
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_assets.errors import AccessError
from graphrag_assets.extras.explorer.page import write_page
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_database import IndexDatabase
from tests.cli import run_command
from tests.conftest import SAMPLE_INPUT

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change to another user"
)
NOBODY = 65534


@contextlib.contextmanager
def other_user() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that another user can enter. Not one of pytest's: each session of pytest closes those to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@as_root
def test_a_database_of_root_is_named_with_its_owner_and_the_remedy(root: Path) -> None:
    working = IndexDatabase(root / "index" / "working.duckdb")
    working.read("SELECT 1")
    for path in (root / "index").rglob("*"):
        os.chown(path, NOBODY, -1)
    os.chown(root / "index", NOBODY, -1)
    os.chown(working.path, 0, 0)
    remedy = r"working.duckdb cannot be used: it belongs to root, and this process runs as .*sudo chown -R"
    with other_user(), pytest.raises(AccessError, match=remedy), working.transaction():
        pass


@as_root
def test_status_sql_and_questions_work_where_the_index_cannot_be_written(sample_index, root, monkeypatch) -> None:
    shutil.copytree(sample_index.root / "index", root / "index", symlinks=True)
    monkeypatch.setenv("GRAPHRAG_DATA", str(root))
    monkeypatch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))
    expected, answer = run_command("status"), GraphRAG().basic("Who commanded the Great Eastern?").answer
    shutil.rmtree(root / "index" / "locks")
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    with other_user():
        assert run_command("status") == expected
        assert "current" in run_command("publications")
        assert run_command("sql", "SELECT count(*) AS n FROM documents").startswith("n\n")
        assert GraphRAG(root).basic("Who commanded the Great Eastern?").answer == answer
        assert "belongs to root" in run_command("index", status=1)


def test_no_other_user_can_read_a_file_of_the_index_or_enter_its_folders(project):
    (project.root / "index").mkdir(mode=0o755)  # it was there before
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia.")
    project.index_all()
    asyncio.run(Ledger(project.root / "index" / "ledger.sqlite").get("no such key"))
    write_page(project.root / "index")
    paths = [path for path in (project.root / "index").rglob("*") if not path.is_symlink() and path.suffix != ".lock"]
    assert {"working.duckdb", "graphrag-1.duckdb", "ledger.sqlite", "explorer.html"} <= {path.name for path in paths}
    for path in (project.root / "index", *paths):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
