"""An index that another user owns, or that cannot be written: one sentence that names the file, or it is read."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_assets.errors import AccessError
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_database import IndexDatabase
from tests.cli import run_command
from tests.conftest import SAMPLE_INPUT

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change to another user"
)
NOBODY = 65534
REMEDY = r"belongs to root, and this process runs as .*sudo chown -R"


@contextlib.contextmanager
def other_user() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index folder that another user can enter, with all that the index has written, which it owns."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_mode & 0o005 != 0o005 and parent != Path("/"):
            parent.chmod(0o755)
    working = IndexDatabase(tmp_path / "index" / "working.duckdb")
    working.read("SELECT 1")
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, NOBODY, -1)
    return tmp_path / "index"


def test_a_database_of_root_is_named_with_its_owner_and_the_remedy(folder: Path) -> None:
    os.chown(folder / "working.duckdb", 0, 0)
    with other_user():
        with pytest.raises(AccessError, match=f"working.duckdb cannot be used: it {REMEDY}"):
            IndexDatabase(folder / "working.duckdb").read("SELECT 1")
        with (
            pytest.raises(AccessError, match=f"working.duckdb cannot be used: it {REMEDY}"),
            IndexDatabase(folder / "working.duckdb").transaction(),
        ):
            pass


def test_status_sql_and_questions_work_where_the_index_cannot_be_written(
    sample_index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(sample_index.root / "index", root / "index", symlinks=True)
    shutil.rmtree(root / "index" / "locks")
    monkeypatch.setenv("GRAPHRAG_DATA", str(root))
    monkeypatch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))
    expected, answer = run_command("status"), GraphRAG().basic("Who commanded the Great Eastern?").answer
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.rmtree(root / "index" / "locks")
    with other_user():
        assert run_command("status") == expected
        assert "current" in run_command("publications")
        assert run_command("sql", "SELECT count(*) AS n FROM documents").startswith("n\n")
        assert GraphRAG(root).basic("Who commanded the Great Eastern?").answer == answer
        assert "belongs to root" in run_command("index", status=1)
