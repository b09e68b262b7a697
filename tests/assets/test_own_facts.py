"""Facts that people write in tables, beside what is extracted from texts."""

from pathlib import Path

import duckdb
import pytest

from graphrag_assets.assets.index import Index
from graphrag_assets.store.index_files import STABLE_NAME
from tests.assets.test_name_decisions import merge_due
from tests.comparison import assert_published, assert_reports, facts, index_all, index_at, no_settings, refresh

TEXT = "Cyrus Field met Samuel Morse in London. Samuel Morse wrote to Cyrus Field. The Niagara left London."
ROWS = """kind,title,source,target,type,description,date,not
entity,Niagara,,,SHIP,A steam frigate.,1866-01-02,
relationship,,Cyrus Field,Niagara,SAILED_IN,Cyrus Field sailed in the Niagara.,,
relationship,,Cyrus Field,Samuel Morse,,,,yes
alias,Mr. Field,,Cyrus Field,,,,
claim,Niagara,,,SPEED,The Niagara made 14 knots.,,
entity,London,,,,,,yes
entity,,,,SHIP,nameless,,
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    no_settings(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_INPUT", str(tmp_path / "input"))
    write(tmp_path, "texts/a.txt", TEXT)
    return index_at(tmp_path, monkeypatch)


def write(root: Path, name: str, text: str) -> None:
    file = root / "input" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def rows(index: Index, query: str) -> list[tuple]:
    return index.working.read(query).rows()


def test_facts_add_correct_and_take_back_and_leave_nothing_when_they_go(index: Index, tmp_path: Path) -> None:
    merge_due(index)
    before = facts(index)
    assert rows(index, "SELECT type FROM entities WHERE title = 'Niagara'") != [("SHIP",)]
    write(tmp_path, "crm/own.facts.csv", ROWS)
    merge_due(index)
    assert rows(index, "SELECT type FROM entities WHERE title = 'Niagara'") == [("SHIP",)]
    pairs = rows(
        index, "SELECT source, target, type FROM relationships WHERE source = 'Cyrus Field' OR target = 'Cyrus Field'"
    )
    assert pairs == [("Cyrus Field", "Niagara", "SAILED_IN")]
    assert rows(index, "SELECT title FROM entities WHERE title IN ('London', 'Mr. Field')") == []
    assert rows(index, "SELECT subject_id, description FROM covariates WHERE type = 'SPEED'") == [
        ("Niagara", "The Niagara made 14 knots.")
    ]
    assert rows(index, "SELECT row_number, error FROM index_errors") == [(7, "the row states no fact")]
    source = "SELECT d.source, d.row_number, d.document_date::VARCHAR FROM entity_mentions m JOIN documents d "
    assert rows(index, f"{source} ON d.id = m.document_id WHERE m.extractor = 'facts' AND m.title = 'Niagara'") == [
        ("crm/own.facts.csv", 1, "1866-01-02")
    ]
    refresh(index)
    (tmp_path / "input" / "crm" / "own.facts.csv").unlink()
    merge_due(index)
    after = facts(index)
    del before["embeddings"], after["embeddings"], before["entity_candidates"], after["entity_candidates"]
    assert after == before


def test_claims_are_taken_back_by_any_name_of_their_subject(index: Index, tmp_path: Path) -> None:
    def claims() -> set[str]:
        index_all(index)
        with duckdb.connect(str(index.database.parent / STABLE_NAME), read_only=True) as published:
            return {text for (text,) in published.execute("SELECT description FROM covariates").fetchall()}

    header = "kind,title,target,type,description,not\n"
    stated = (
        "claim,Niagara,,SPEED,The Niagara made 14 knots.,\nclaim,The Niagara,,SPEED,She made 12 knots.,\n"
        "claim,Niagara,London,VOYAGE,The Niagara left London.,\nclaim,Unheard,,SPEED,It is unheard.,\n"
        "alias,The Niagara,Niagara,,,\n"
    )
    every = {"The Niagara made 14 knots.", "She made 12 knots.", "The Niagara left London.", "It is unheard."}
    write(tmp_path, "crm/stated.facts.csv", header + stated)
    assert claims() == every
    some = "claim,the niagara,,SPEED,she made 12  knots.,yes\nclaim,Niagara,London,,,yes\nclaim,Niagara,Paris,,,yes\n"
    write(tmp_path, "notes/not.facts.csv", header + some)
    assert claims() == {"The Niagara made 14 knots.", "It is unheard."}
    write(tmp_path, "notes/not.facts.csv", header + "claim,The Niagara,,SPEED,,yes\nclaim,Unheard,,,,yes\n")
    assert claims() == {"The Niagara left London."}
    (tmp_path / "input" / "notes" / "not.facts.csv").unlink()
    assert claims() == every
    assert_published(index)
    assert_reports(index)
