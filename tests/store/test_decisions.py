"""The file of decisions on names."""

import threading
from pathlib import Path

import pytest

from graphrag_assets.errors import StoreError
from graphrag_assets.store.decisions import FILE, Decision, changing_decisions, read_decisions

FIELD = Decision("accept", "field", "cyrus field", reason="Mr. Field", decided_at="2026-01-01")
MERCURY = Decision("split", "mercury", "mercury (element)", "documents", ("chemistry/*",))


def decide(folder: Path, *decisions: Decision) -> None:
    with changing_decisions(folder) as kept:
        kept.update({one.key: one for one in decisions})


def test_decisions_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_decisions(tmp_path) == []
    decide(tmp_path, MERCURY, FIELD)
    assert read_decisions(tmp_path) == [FIELD, MERCURY]


def test_a_decision_on_the_same_pair_in_either_order_replaces_the_earlier_one(tmp_path: Path) -> None:
    decide(tmp_path, FIELD)
    decide(tmp_path, Decision("reject", "cyrus field", "field"))
    assert [one.kind for one in read_decisions(tmp_path)] == ["reject"]


def test_changes_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def work(name: str) -> None:
        for number in range(5):
            decide(tmp_path, Decision("reject", name, f"{name} {number}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_decisions(tmp_path)) == 15


@pytest.mark.parametrize(
    "line", ["{", '{"kind": "accept"}', '{"kind": "guess", "name": "a"}', "[]", '{"name": "a", "x": 1}']
)
def test_a_line_that_is_no_decision_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / FILE).write_text(f"\n{line}\n")
    with pytest.raises(StoreError, match="line 2"):
        read_decisions(tmp_path)
