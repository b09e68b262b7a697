"""Killed and concurrent indexing processes: real processes, one ledger, one working database."""

from pathlib import Path

import pytest

from graphrag_assets.settings import Settings
from tests.conftest import IndexFolder
from tests.kills import kill_and_rerun
from tests.model_index import ModelIndex, differences
from tests.openai_server import running

DOCUMENTS = {
    "one/a.md": "Captain James Anderson commanded the Great Eastern. Cyrus Field sailed with Samuel Canning to Newfoundland.",
    "one/b.md": "William Thomson invented the mirror galvanometer. Cyrus Field met William Thomson in Valentia.",
    "two/c.md": "The Great Eastern reached Newfoundland. Robert Halpin and James Anderson were honoured in London.",
}


def write(folder: Path, documents: dict[str, str]) -> Path:
    for name, text in documents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.extended
def test_killed_processes_repeat_only_in_flight_calls_and_leave_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = write(tmp_path / "input", DOCUMENTS)
    with running(latency=0.1) as server:
        clean = ModelIndex(tmp_path / "clean", server.url, documents)
        for name, value in clean.environment.items():
            monkeypatch.setenv(name, value)
        IndexFolder(clean.folder).index_all()
        undisturbed = len(server.requests)
        found = kill_and_rerun(server, tmp_path / "killed", documents, lambda _, sent: sent >= 5)
    assert found.killed == 1
    ours, theirs = clean.tables(), found.tables
    del ours["refresh_state"], theirs["refresh_state"]  # what a run of Dagster records
    assert not differences(ours, theirs)
    assert 0 <= found.extra(undisturbed) <= found.in_flight <= 2 * Settings().concurrency
