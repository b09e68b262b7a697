"""Lines that most documents repeat make no names and no relationships; copies of a document keep theirs."""

from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.indexing.index_batch import index_batch
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.scan import scan
from graphrag_assets.pipeline.repeated_lines import repeated_lines, without_lines
from tests.comparison import index_at, no_settings
from tests.pipeline.frames import entity_mentions, relationship_mentions

NOTICE = "Send it to Hartley Bakery by Whitfield Society."


def described(*rows: tuple[str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["document_id", "description"], orient="row")


@pytest.mark.parametrize(
    ("rows", "n_documents", "expected"),
    [
        ([("a", "x"), ("b", "x"), ("c", "x"), ("a", "1"), ("b", "2"), ("c", "3")], 5, ["x"]),
        ([("a", "x"), ("b", "x"), ("c", "x"), ("a", "1"), ("b", "2"), ("c", "3")], 6, []),
        ([("a", "x"), ("b", "x"), ("a", "1"), ("b", "2")], 2, []),
        ([("a", "x"), ("b", "x"), ("c", "x")], 3, []),
    ],
    ids=["more than half", "half", "two documents", "copies"],
)
def test_repeated_lines_are_those_of_most_documents(
    rows: list[tuple[str, str]], n_documents: int, expected: list[str]
) -> None:
    assert repeated_lines(described(*rows), n_documents) == expected


def test_only_mentions_of_nothing_but_the_line_are_left_out() -> None:
    once = entity_mentions(("d#1", "A", "NAME", "x"), ("d#1", "B", "NAME", "y"))
    assert without_lines(once, ["x"], "n_sentences")["title"].to_list() == ["B"]
    twice = once.with_columns(n_sentences=pl.lit(2))
    assert without_lines(twice, ["x"], "n_sentences").equals(twice)
    by_model = entity_mentions(("d#1", "A", "NAME", "x"), extractor="chat/x")
    assert without_lines(by_model, ["x"], "n_sentences").equals(by_model)
    pair = relationship_mentions(("d#1", "A", "B", 1.0))
    assert without_lines(pair, pair["description"].to_list(), "strength").is_empty()


def test_a_notice_in_every_document_makes_no_relationship_after_any_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_settings(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_INPUT", str(tmp_path / "input"))
    index = index_at(tmp_path, monkeypatch)

    def write(name: str, text: str) -> set[str]:
        file = tmp_path / "input" / f"{name}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{text}\n\n{NOTICE}")
        for batch in scan(index).due:
            index_batch(index, batch, index.models(batch), "test")
        merge_graph(index, index.models(), "test")
        titles = set(index.working.read("SELECT title FROM entities")["title"])
        changes = merge_graph(index, index.models(), "test", from_scratch=True).changes.values()
        assert sum(change.inserted + change.deleted for change in changes) == 0
        return titles

    write("a", "Anna Bell met Peter Roe.")
    assert "Hartley Bakery" in write("b", "Anna Bell met John Hart.")
    assert write("c", "Anna Bell met Mary Stone.") == {"Anna Bell", "Peter Roe", "John Hart", "Mary Stone"}
    assert "Hartley Bakery" in write("c", "Anna Bell met Mary Stone at Hartley Bakery.")
