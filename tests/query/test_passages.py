"""Ranking passages by the graph of their names and subjects."""

import json

import polars as pl
import pytest
from click.testing import CliRunner

from graphrag_assets.cli.main import main
from graphrag_assets.query import GraphRAG
from graphrag_assets.query.retrieval import text_scores

from ..conftest import indexed

QUESTION = "Which river flows past the birthplace of the designer of the Alder Bridge?"
PLANTED = {
    "Alder Bridge": "The Alder Bridge was drawn by Mira Holt. It carries two lanes over a deep gorge.",
    "Mira Holt": "Mira Holt was an engineer who grew up in Tarnby. She retired early and kept bees.",
    "Tarnby": "Tarnby is a market town in the hills. Barges on the Esk bring coal to its mills.",
}
# Words of the question, in passages that lead nowhere.
DISTRACTORS = {
    f"Note {n}": f"Number {n}: a designer of a bridge spoke of a river that flows past a birthplace." for n in range(30)
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    root = tmp_path_factory.mktemp("planted")
    rows = [{"id": title, "title": title, "text": text} for title, text in {**PLANTED, **DISTRACTORS}.items()]
    (root / "input").mkdir()
    (root / "input" / "passages.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with indexed(root, root / "input") as project:
        yield project


@pytest.fixture(scope="module")
def rag(planted):
    return GraphRAG(planted.root / "index")


@pytest.mark.extended
def test_a_passage_two_hops_away_is_found_that_words_cannot_find(rag):
    for method in ("words", "text"):
        assert "Tarnby" not in rag.retrieve(QUESTION, 10, method)["document"].to_list()
    found = rag.retrieve(QUESTION, 10)
    assert {"Alder Bridge", "Mira Holt", "Tarnby"} <= set(found["document"][:5])
    tarnby = found.row(by_predicate=pl.col("document") == "Tarnby", named=True)
    assert tarnby["about"] == ["Tarnby"]
    assert tarnby["rank_by_words"] is None
    assert tarnby["rank_by_graph"] == tarnby["rank"]


def test_no_rank_passes_through_what_a_filter_leaves_out(rag):
    titles = [*PLANTED, *DISTRACTORS]
    whole = rag.retrieve(QUESTION, 40, documents=titles)
    assert whole["document"].to_list() == rag.retrieve(QUESTION, 40)["document"].to_list()
    without = rag.retrieve(QUESTION, 40, documents=[title for title in titles if title != "Mira Holt"])
    assert "Mira Holt" not in without["document"]
    assert "Tarnby" not in without.filter(without["rank_by_graph"].is_not_null())["document"]
    assert without.filter(without["document"] == "Tarnby")["about"].to_list() in ([], [[]])


def test_words_and_vectors_add_up_each_spread_over_its_best_rows():
    words, vectors = {7: 3.0, 2: 1.5}, {2: 0.9, 5: 0.8, 1: 0.3}
    assert text_scores(words, vectors) == pytest.approx({2: 0.5 + 0.7, 7: 1.0, 5: 0.7 * 5 / 6, 1: 0.0})
    assert list(text_scores(words, vectors)) == [2, 7, 5, 1]
    assert list(text_scores(words, {})) == [7, 2]
    assert list(text_scores({}, vectors)) == [2, 5, 1]
    assert text_scores({}, {3: 0.5, 4: 0.5}) == {3: 0.7, 4: 0.7}


def test_rows_beyond_the_hundredth_keep_their_order_and_change_none_before_them():
    words = {number: 300.0 - number for number in range(150)}
    vectors = {number: 0.9 - number / 1000 for number in range(149, -1, -1)}
    whole = text_scores(words, vectors)
    first = text_scores({n: words[n] for n in range(100)}, dict(list(vectors.items())[-100:]))
    assert list(whole)[:100] == list(first) == list(range(100))
    assert {n: whole[n] for n in first} == first
    assert list(whole)[100:] == list(range(100, 150))
    assert (whole[98], whole[99]) == (pytest.approx((1 + 0.7) / 99), 0)


def test_the_command_shows_passages_with_their_ranks(planted):
    path = str(planted.root / "index")
    printed = CliRunner().invoke(
        main, ["query", "retrieve", QUESTION, "--count", "5", "--index", path], env={"COLUMNS": "120"}
    )
    assert printed.exit_code == 0, printed.output
    assert "found through: Tarnby" in printed.output
    as_json = CliRunner().invoke(main, ["query", "retrieve", QUESTION, "--count", "5", "--json", "--index", path])
    rows = json.loads(as_json.stdout)
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]
    assert {"document", "start_char", "end_char", "rank_by_words", "rank_by_graph"} <= rows[0].keys()
    nothing = CliRunner().invoke(main, ["query", "retrieve", "???", "--ranking", "words", "--index", path])
    assert nothing.stdout == ""
