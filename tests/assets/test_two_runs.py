"""Two runs of one index: one after the other writes it, and neither publishes what it has only half of."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.assets.communities import detect_communities
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.publication import publication
from graphrag_assets.assets.scan import scan
from graphrag_assets.errors import CheckError
from graphrag_assets.store.index_files import current_number
from tests.conftest import IndexFolder, default_settings
from tests.contention import waiting_for

TEXTS = {
    "one/a.md": "Captain James Anderson commanded the Great Eastern. Cyrus Field met William Thomson in Valentia.",
    "two/b.md": "Samuel Canning sailed with Cyrus Field to Newfoundland. Robert Halpin met Samuel Canning.",
    "three/c.md": "Daniel Gooch sailed on the Great Eastern. William Thomson met Daniel Gooch in Valentia.",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IndexFolder:
    default_settings(tmp_path, monkeypatch)
    folder = IndexFolder(tmp_path)
    for path, text in TEXTS.items():
        folder.write(path, text)
    return folder


def commit(folder: IndexFolder, batch: str) -> None:
    index_batch(folder.index, batch, folder.index.models(batch), "other")


def test_publishing_is_left_to_the_run_that_has_changed_batches(folder, caplog):
    commit(folder, "one")
    with pytest.raises(CheckError, match="changed batches after knowledge_graph, detect_communities"):
        publication.update(folder.index, "first")
    folder.index_all()
    folder.write("two/b.md", TEXTS["two/b.md"] + " He met Cyrus Field.")
    commit(folder, "two")
    found = publication.update(folder.index, "first")
    assert found.metadata == {"publication": 1, "new": False}
    assert "publishing is left to it" in caplog.text
    folder.refresh("other")
    assert current_number(folder.root / "index") == 2


def test_a_stage_waits_while_another_step_writes_the_index(folder):
    folder.index_all()
    writing = folder.index.working.writing("another step")
    writing.__enter__()
    with waiting_for("writer", lambda: detect_communities.update(folder.index, "waits")) as stage:
        assert not stage.done()
        writing.__exit__(None, None, None)
    assert stage.result().changes["communities"].inserted == 0


def started(folder: IndexFolder) -> "subprocess.Popen[str]":
    """`index` in a process of its own."""
    command, environment = [sys.executable, "-m", "graphrag_assets", "index"], {**os.environ, "DAGSTER_HOME": ""}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=environment, cwd=folder.root, **pipes)


@pytest.mark.extended
def test_two_commands_at_once_end_one_after_the_other(folder):
    runs = [started(folder) for _ in range(2)]
    outputs = [run.communicate(timeout=300)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
    assert failed_blocking_checks(folder.index) == []
    assert scan(folder.index).due == []
    assert folder.sql("SELECT DISTINCT batch FROM documents ORDER BY batch") == [("one",), ("three",), ("two",)]
