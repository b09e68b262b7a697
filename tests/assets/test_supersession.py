"""A later statement on the same slot supersedes an earlier one, in whatever order documents are indexed and edited."""

import random
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pytest

from graphrag_assets.assets.index import Index
from graphrag_assets.query import GraphRAG
from tests.comparison import assert_published, index_all, index_at, no_settings

COMPANIES = ["Harbour", "Silver", "Northern", "Amber", "Granite", "Meadow", "Copper", "Willow", "Falcon", "Juniper"]
PEOPLE = [
    "Anna Berg",
    "Bert Olsen",
    "Clara Lund",
    "David Holm",
    "Edith Krog",
    "Frank Moe",
    "Greta Dahl",
    "Hugo Vik",
    "Ida Foss",
    "Jonas Lie",
    "Karen Rud",
    "Lars Hauge",
    "Maria Solberg",
    "Niels Borg",
    "Olga Strand",
    "Peter Aas",
    "Ruth Haugen",
    "Simon Lie",
    "Tora Myhre",
    "Viktor Ness",
]
TOWNS = ["Bergen", "Oslo", "Kiel", "Cork", "Malta", "Lisbon", "Bremen", "Leith", "Dover", "Cadiz"]
FIRST_DAY = date(2020, 1, 1)


@dataclass(frozen=True)
class Statement:
    """What one sentence says: `value` holds in `slot`; at another time, it may be another value."""

    slot: tuple[str, str]
    value: str

    @property
    def sentence(self) -> str:
        kind, name = self.slot
        if kind == "LED":
            return f"{self.value} led the {name} Company."
        return f"The Coastal Company charged {self.value} for each message to {name}."


Documents = dict[str, tuple[date, list[Statement]]]


def planted(draw: random.Random) -> Documents:
    """Twelve dated documents with 20 slots, in each of which a later statement supersedes an earlier one."""
    documents: Documents = {f"{n % 3}/{n}.md": (FIRST_DAY + timedelta(days=100 * n), []) for n in range(12)}
    people = iter(PEOPLE)
    for number in range(20):
        if number < 10:
            slot, values = ("LED", COMPANIES[number]), (next(people), next(people))
        else:
            slot, values = ("AMOUNT", TOWNS[number - 10]), (f"£{number}", f"£{number + 30}")
        places = sorted(draw.sample(range(12), 3))
        for place, value in zip(
            places, (values[0], *draw.choice([(values[0], values[1]), (values[1], values[1])])), strict=True
        ):
            documents[f"{place % 3}/{place}.md"][1].append(Statement(slot, value))
    return documents


def write(index: Index, documents: Documents) -> None:
    folder = Path(index.settings.input_folder)
    for old in folder.rglob("*.md"):
        if str(old.relative_to(folder)) not in documents:
            old.unlink()
    for name, (day, statements) in documents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = " ".join(statement.sentence for statement in statements) or "Nothing was decided."
        (folder / name).write_text(f"---\ndate: {day}\n---\n# Minutes\n\n{text}\n")


def expected(documents: Documents, day: date) -> dict[tuple[str, str], str]:
    """The value of each slot on a day: the newest statement's."""
    said = sorted((d, s) for d, statements in documents.values() if d <= day for s in _by_slot(statements))
    return {slot: value for _, (slot, value) in said}


def _by_slot(statements: list[Statement]) -> list[tuple[tuple[str, str], str]]:
    return [(statement.slot, statement.value) for statement in statements]


def published(rag: GraphRAG, day: date) -> dict[tuple[str, str], str]:
    """The same by the macro facts_as_of; fails where two values hold."""
    rows = rag.sql("SELECT subject, predicate, object, description FROM facts_as_of($day)", {"day": day}).rows()
    held: dict[tuple[str, str], set[str]] = {}
    for subject, predicate, target, description in rows:
        if predicate == "LED":
            held.setdefault(("LED", target.removesuffix(" Company")), set()).add(subject)
        elif predicate == "AMOUNT":
            held.setdefault(("AMOUNT", description.rstrip(".").rpartition(" ")[2]), set()).add(target)
    return {slot: value for slot, (value,) in held.items()}


def times(index: Index) -> list[tuple]:
    """The times of all claims and relationships of the publication, without numbers."""
    columns = "id, stated_on, valid_from, valid_until, superseded_by"
    with GraphRAG(index.database.parent) as rag:
        query = f"SELECT 'claim' AS kind, {columns}, status FROM covariates UNION ALL "
        query += f"SELECT 'relationship', {columns}, relations FROM relationships ORDER BY ALL"
        return rag.sql(query).rows()


def changed(documents: Documents, draw: random.Random) -> Documents:
    """One document is deleted, one loses a statement, one has another date."""
    left = {name: (day, list(statements)) for name, (day, statements) in documents.items()}
    del left[draw.choice(sorted(left))]
    edited, moved = draw.sample(sorted(left), 2)
    left[edited] = left[edited][0], left[edited][1][1:]
    left[moved] = left[moved][0] + timedelta(days=draw.choice((-137, 137))), left[moved][1]
    return left


@pytest.mark.extended
def test_a_fact_holds_until_a_later_one_whatever_the_order_of_indexing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(1)
    documents = planted(draw)
    no_settings(monkeypatch)
    index = index_at(tmp_path / "made", monkeypatch)
    order = draw.sample(sorted(documents), 12)
    for part in (order[:7], order):  # the rest comes when the first are published
        write(index, {name: documents[name] for name in part})
        index_all(index, only=list(dict.fromkeys(name.partition("/")[0] for name in part)))
    for is_edited in (False, True):
        with GraphRAG(index.database.parent) as rag:
            for day in sorted({day + timedelta(days=offset) for day, _ in documents.values() for offset in (-1, 0)}):
                assert published(rag, day) == expected(documents, day), day
        assert_published(index)
        if is_edited:
            break
        fresh = index_at(tmp_path / "fresh", monkeypatch)
        write(fresh, documents)
        index_all(fresh)
        assert times(index) == times(fresh)
        index = index_at(tmp_path / "made", monkeypatch)
        documents = changed(changed(documents, draw), draw)
        write(index, documents)
        index_all(index)
