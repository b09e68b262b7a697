"""Decisions on names: what they do to the graph, and that undoing one leaves nothing of it."""

import random
from pathlib import Path

import pytest

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.knowledge_graph import knowledge_graph
from graphrag_assets.assets.scan import scan
from graphrag_assets.errors import InputError
from graphrag_assets.extras.resolution.decide import accept, record, split, undo
from graphrag_assets.store.decisions import Decision, changing_decisions, read_decisions
from tests.comparison import facts, index_at, no_settings

TEXTS = (
    "Cyrus Field met Captain Anderson in Valentia. Mercury Telegraph hired Cyrus Field.",
    "The planet Mercury circles the Sun. Galileo watched Mercury and Venus.",
    "Mercury is a metal. Liebig weighed Mercury and Zinc in Giessen.",
    "Cyrus W. Field wrote to Galileo. Captain Andersen sailed with Venus to Valentia.",
    "Submarine cables end in Valentia. A submarine cable broke. Mercury Telegraph mended it.",
)
NAMES = ("cyrus field", "cyrus w. field", "mercury", "mercury telegraph", "anderson", "andersen", "venus")


def open_index(root: Path, patch: pytest.MonkeyPatch, source: Path) -> Index:
    patch.setenv("GRAPHRAG_INPUT", str(source))
    return index_at(root, patch)


def merge_due(index: Index) -> None:
    for batch in scan(index).due:
        index_batch(index, batch, index.models(batch), "test")
    knowledge_graph.update(index, "test")


def decide(index: Index, *decisions: Decision) -> None:
    with changing_decisions(index.settings.index_folder) as kept:
        kept.update({one.key: one for one in decisions})


def undo_all(index: Index) -> None:
    with changing_decisions(index.settings.index_folder) as kept:
        kept.clear()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    no_settings(monkeypatch)
    for number, text in enumerate(TEXTS):
        write(tmp_path / "input", number, text)
    index = open_index(tmp_path / "index", monkeypatch, tmp_path / "input")
    merge_due(index)
    return index


def write(folder: Path, number: int, text: str | None) -> None:
    file = folder / "batch" / f"{number}.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text) if text else file.unlink(missing_ok=True)


def titles(index: Index) -> set[str]:
    return set(index.working.read("SELECT title FROM entities")["title"])


def test_an_accepted_pair_is_one_entity_with_the_relationships_of_both(index: Index) -> None:
    before = facts(index)
    decide(index, Decision("accept", "andersen", "anderson"))
    merge_due(index)
    assert "Andersen" not in titles(index)
    neighbors = index.working.read(
        "SELECT DISTINCT unnest([source, target]) AS t FROM relationships WHERE 'Anderson' IN (source, target)"
    )["t"]
    assert {"Valentia", "Venus"} <= set(neighbors)
    undo_all(index)
    merge_due(index)
    assert facts(index) == before


def test_a_name_is_split_by_documents(index: Index) -> None:
    element = Decision("split", "mercury", "mercury (element)", "documents", ("batch/2*",))
    decide(index, element)
    merge_due(index)
    assert {"Mercury", "Mercury (element)"} <= titles(index)
    related = index.working.read(
        "SELECT source, target FROM relationships WHERE 'Mercury (element)' IN (source, target)"
    )
    assert {name for row in related.rows() for name in row} == {"Mercury (element)", "Liebig", "Zinc", "Giessen"}
    decide(index, Decision("split", "mercury", split_by="documents"))
    undo_all(index)
    decide(index, Decision("split", "mercury", split_by="documents"))
    merge_due(index)
    assert {"Mercury (1)", "Mercury (2)"} <= titles(index)


REFUSED = [
    [("accept", "mercury", "venus"), ("split", "Mercury")],
    [("split", "Mercury"), ("accept", "mercury", "venus")],
    [("split", "Mercury", "batch/2*", "Mercury (element)"), ("accept", "Mercury (element)", "Mercury")],
    [("accept", "Venus", "Mercury"), ("split", "Mercury", "batch/2*", "Venus")],
    [("split", "Mercury", "batch/2*", '"')],
    [("split", "Mercury", "nowhere/*", "Mercury (element)")],
    [("undo", "")],
]


def test_what_contradicts_or_says_nothing_is_refused(index: Index) -> None:
    def make(kind: str, name: str, *more: str) -> None:
        if kind == "split":
            split(index, name, "documents" if more else "type", more[:1], "".join(more[1:]))
        else:
            {"accept": accept, "undo": undo}[kind](index, name, *more)

    for *earlier, last in REFUSED:
        for one in earlier:
            make(*one)
        with pytest.raises(InputError):
            make(*last)
        undo_all(index)
    split(index, "Mercury", "type")
    assert record(index, [Decision("accept", "mercury", "venus")]) == []  # a judge's, which is no error


def some_decision(chance: random.Random) -> Decision:
    one, other = chance.sample(NAMES, 2)
    match chance.randrange(5):
        case 0 | 1:
            return Decision("accept", one, other)
        case 2:
            return Decision("reject", one, other)
        case 3:
            return Decision("split", one, split_by=chance.choice(("type", "documents")))
        case _:
            return Decision("split", one, f"{one} (x)", "documents", (f"batch/{chance.randrange(3)}*",))


@pytest.mark.extended
def test_decisions_and_edits_in_any_order_are_a_fresh_index_with_the_same_decisions(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(0)
    for _ in range(8):
        match chance.randrange(4):
            case 0:
                write(tmp_path / "input", chance.randrange(6), chance.choice((*TEXTS, None)))
            case 1:
                with changing_decisions(index.settings.index_folder) as kept:
                    for key in chance.sample(sorted(kept), min(len(kept), 1)):
                        del kept[key]
            case _:
                decide(index, some_decision(chance))
        if chance.random() < 0.7:
            merge_due(index)
    merge_due(index)
    decided = read_decisions(index.settings.index_folder)
    made = facts(index)
    fresh = open_index(tmp_path / "fresh", monkeypatch, tmp_path / "input")
    decide(fresh, *decided)
    merge_due(fresh)
    assert made == facts(fresh)
