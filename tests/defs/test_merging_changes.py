"""The merge derives what changed, and notices what is changed past the change log."""

from pathlib import Path

import pytest

from graphrag_assets.indexing import merge_graph as stage
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import index_batch
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.scan import scan
from tests.comparison import SENTENCES, index_at, no_settings

FLIP = "UPDATE entity_aliases SET accepted = NOT accepted, rule = 'user' WHERE alias_key = "


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    no_settings(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_INPUT", str(tmp_path / "input"))
    for name, start in (("x", 0), ("y", 20), ("z", 40)):
        write(tmp_path, name, start, start + 20)
    index = index_at(tmp_path, monkeypatch)
    merge_due(index)
    return index


def write(root: Path, name: str, start: int, end: int) -> None:
    file = root / "input" / "batch" / f"{name}.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(" ".join(SENTENCES[start:end]))


def merge_due(index: Index) -> dict[str, int]:
    """Index what is due, and merge; the rows read of the graph by table."""
    for batch in scan(index).due:
        index_batch(index, batch, index.models(batch), "test")
    return {name: frame.height for name, frame in merge_graph(index, index.models(), "test").frames.items()}


def rows_written_from_scratch(index: Index) -> int:
    changes = merge_graph(index, index.models(), "test", from_scratch=True).changes.values()
    return sum(change.inserted + change.deleted for change in changes)


def test_an_edit_merges_what_it_touches_and_gives_the_whole_graph(index: Index, tmp_path: Path) -> None:
    everything = index.working.read("SELECT count(*) FROM relationships").item()
    write(tmp_path, "y", 20, 39)
    merged = merge_due(index)
    assert 0 < merged["relationships"] < everything
    assert rows_written_from_scratch(index) == 0


def test_a_decision_made_with_sql_takes_effect(index: Index) -> None:
    alias = index.working.read("SELECT min(alias_key) FROM entity_aliases").item()
    with index.working.transaction() as connection:
        connection.execute(f"{FLIP} $alias", {"alias": alias})
    before = index.working.read("SELECT count(*) FROM entities").item()
    assert merge_due(index)["entities"] >= before
    assert rows_written_from_scratch(index) == 0


def test_nothing_is_merged_when_nothing_changed(index: Index) -> None:
    assert merge_due(index)["entities"] == 0


@pytest.mark.parametrize("emptied", [False, True])
def test_merging_range_by_range_gives_the_whole_graph(
    index: Index, monkeypatch: pytest.MonkeyPatch, emptied: bool
) -> None:
    if emptied:
        with index.working.transaction() as connection:
            connection.execute("DELETE FROM entities; DELETE FROM relationships")
    monkeypatch.setattr(stage, "MENTIONS_PER_PART", 20)
    assert (rows_written_from_scratch(index) > 0) == emptied
    monkeypatch.setattr(stage, "MENTIONS_PER_PART", 1_000_000)
    assert rows_written_from_scratch(index) == 0


def test_another_date_of_a_document_merges_what_it_names_again(index: Index, tmp_path: Path) -> None:
    folder = tmp_path / "input" / "dated"
    folder.mkdir(parents=True)
    for name, day, verb in (("a", "2025-07-15", "founded"), ("b", "2025-07-28", "commanded")):
        (folder / f"{name}.md").write_text(f"---\ndate: {day}\n---\n\nCyrus Stone {verb} Harbour Bank.")
    merge_due(index)
    query = "SELECT type, relations FROM relationships WHERE source = 'Cyrus Stone' AND target = 'Harbour Bank'"
    assert index.working.read(query).row(0) == ("COMMANDED", "COMMANDED (2025-07-28); FOUNDED (2025-07-15)")
    (folder / "a.md").write_text("---\ndate: 2025-08-01\n---\n\nCyrus Stone founded Harbour Bank.")
    merge_due(index)
    assert index.working.read(query).row(0) == ("FOUNDED", "FOUNDED (2025-08-01); COMMANDED (2025-07-28)")
    assert rows_written_from_scratch(index) == 0
