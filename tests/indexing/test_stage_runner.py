"""Runs of `index`: the stages in order, and the checks between them."""

from pathlib import Path

import pytest

from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.stage_runner import StageRunner
from tests.comparison import SENTENCES, index_at, no_settings


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    no_settings(monkeypatch)
    for name, start in (("x", 0), ("y", 20)):
        file = tmp_path / "input" / "batch" / f"{name}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(" ".join(SENTENCES[start : start + 20]))
    index = index_at(tmp_path, monkeypatch)
    runner = StageRunner(index)
    assert [run.success for run in runner.index(["batch"])] == [True]
    assert runner.refresh(index).published == (1, True)
    return index


def test_an_edit_is_verified_by_the_rows_it_touches_and_published(index: Index, tmp_path: Path) -> None:
    (tmp_path / "input" / "batch" / "y.txt").write_text(" ".join(SENTENCES[20:39]))
    runner = StageRunner(index)
    assert [run.success for run in runner.index(["batch"])] == [True]
    assert runner.refresh(index).published == (2, True)
    assert runner.refresh(index).published == (2, False)


def test_a_failed_check_ends_the_refresh_with_its_remedy_before_the_next_stage(index: Index) -> None:
    with index.working.transaction() as connection:
        connection.execute("UPDATE text_units SET batch = 'gone'; UPDATE documents SET batch = 'gone'")
    run = StageRunner(index).refresh(index)
    assert run.reason is not None
    assert run.reason.startswith("Check failed: Every row belongs to an existing document.")
    assert "Launch the job" in run.reason
    assert run.published is None
