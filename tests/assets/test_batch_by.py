"""Another division of the input into batches."""

from dataclasses import replace
from pathlib import Path

import pytest

from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.scan import scan
from tests.assets.test_name_decisions import merge_due
from tests.comparison import facts, index_at, no_settings


def test_another_division_into_batches_extracts_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_settings(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_INPUT", str(tmp_path / "input"))
    (tmp_path / "input").mkdir()
    for number in range(3):
        text = f"Captain Ansel Berg{number} met Cyrus Field in Valentia in 186{number}. The Niagara laid the cable."
        (tmp_path / "input" / f"note {number}.txt").write_text(text)
    merge_due(index_at(tmp_path, monkeypatch))
    for division, names in (("hash=2", {"0", "1"}), ("depth=1", {f"note {number}.txt" for number in range(3)})):
        monkeypatch.setenv("GRAPHRAG_BATCH_BY", division)
        index = index_at(tmp_path, monkeypatch)
        before, found = facts(index), scan(index)
        for batch in [*found.changed, *found.deleted]:
            models = replace(index.models(batch), extract=lambda units: (pytest.fail(unit.id) for unit in units))
            index_batch(index, batch, models, "test")
        merge_due(index)
        assert {row["batch"] for row in index.working.read("FROM entity_mentions").to_dicts()} <= names
        for name, rows in facts(index).items():
            without = [
                [{k: v for k, v in row.items() if k != "batch"} for row in some] for some in (rows, before[name])
            ]
            assert without[0] == without[1], name
