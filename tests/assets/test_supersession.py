"""A later statement on the same slot supersedes an earlier one, in whatever order documents are indexed and edited."""

from datetime import date
from pathlib import Path

import pytest

from graphrag_assets.assets.index import Index
from graphrag_assets.query import GraphRAG
from tests.comparison import index_all, index_at, no_settings

DOCUMENTS = {
    "a/1.md": (date(2020, 1, 1), "Anna Berg led the Harbour Company. Clara Lund led the Silver Company."),
    "b/2.md": (date(2020, 6, 1), "Bert Olsen led the Harbour Company."),
    "a/3.md": (date(2021, 1, 1), "David Holm led the Silver Company."),
    "c/4.md": (date(2021, 6, 1), "Bert Olsen led the Harbour Company. Frank Moe led the Amber Company."),
}
HELD = {
    date(2019, 12, 31): set(),
    date(2020, 1, 1): {("Anna Berg", "Harbour"), ("Clara Lund", "Silver")},
    date(2020, 6, 1): {("Bert Olsen", "Harbour"), ("Clara Lund", "Silver")},
    date(2021, 1, 1): {("Bert Olsen", "Harbour"), ("David Holm", "Silver")},
    date(2021, 6, 1): {("Bert Olsen", "Harbour"), ("David Holm", "Silver"), ("Frank Moe", "Amber")},
}


def write(index: Index, name: str, day: date, text: str) -> None:
    file = Path(index.settings.input_folder) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\ndate: {day}\n---\n# Minutes\n\n{text}\n")


def held(index: Index, day: date) -> set[tuple[str, str]]:
    """Who leads what on a day, by the macro facts_as_of."""
    with GraphRAG(index.database.parent) as rag:
        facts = rag.sql("SELECT subject, object FROM facts_as_of($day) WHERE predicate = 'LED'", {"day": day})
    return {(subject, company.removesuffix(" Company")) for subject, company in facts.iter_rows()}


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "b", "a")])
def test_a_fact_holds_until_a_later_one_whatever_the_order_of_indexing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[str, ...]
) -> None:
    no_settings(monkeypatch)
    index = index_at(tmp_path, monkeypatch)
    for name, (day, text) in DOCUMENTS.items():
        write(index, name, day, text)
    for batch in order:
        index_all(index, only=[batch])
    assert {day: held(index, day) for day in HELD} == HELD
    (Path(index.settings.input_folder) / "b/2.md").unlink()
    write(index, "a/3.md", date(2019, 6, 1), "David Holm led the Silver Company.")
    index_all(index)
    assert held(index, date(2021, 1, 1)) == {("Anna Berg", "Harbour"), ("Clara Lund", "Silver")}
    assert held(index, date(2021, 6, 1)) == {
        ("Bert Olsen", "Harbour"),
        ("Clara Lund", "Silver"),
        ("Frank Moe", "Amber"),
    }
