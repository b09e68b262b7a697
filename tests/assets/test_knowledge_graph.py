"""Mentions merged into entities and relationships: values by hand, and that a run derives what changed."""

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.knowledge_graph import knowledge_graph
from graphrag_assets.assets.scan import retry_given_up, scan
from graphrag_assets.store import schema
from tests.comparison import SENTENCES, index_at, no_settings
from tests.pipeline.frames import NO_ALIASES, entity_mentions, merge, relationship_mentions


def aliases(*rows: tuple[str | None, str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        [(document, alias, key, "decision") for document, alias, key in rows],
        schema=NO_ALIASES.schema,
        orient="row",
    )


def test_mentions_that_differ_in_case_and_quotes_are_one_entity():
    mentions = entity_mentions(
        ("d#1", "Great Eastern", "SHIP", "A ship."),
        ("d#2", "Great Eastern", "SHIP", "A ship."),
        ("d#3", "“great eastern”", "SHIP", "A ship."),
    )
    graph = merge(mentions, relationship_mentions(), NO_ALIASES)
    entity = graph.entities.row(0, named=True)
    assert graph.entities.height == 1
    assert entity["title"] == "Great Eastern"
    assert entity["text_unit_ids"] == ["d#1", "d#2", "d#3"]
    assert entity["frequency"] == 3
    assert entity["description"] == "A ship."


def test_majority_type_wins_and_a_specific_type_beats_a_generic_one():
    mentions = entity_mentions(
        ("d#1", "Valentia", "NAME", "a"),
        ("d#2", "Valentia", "NAME", "b"),
        ("d#3", "Valentia", "GEO", "c"),
        ("d#1", "Field", "PERSON", "a"),
        ("d#2", "Field", "PERSON", "b"),
        ("d#3", "Field", "GEO", "c"),
    )
    graph = merge(mentions, relationship_mentions(), NO_ALIASES)
    types = dict(graph.entities.select("title", "type").iter_rows())
    assert types == {"Valentia": "GEO", "Field": "PERSON"}
    listed = graph.entities.filter(pl.col("title") == "Field")["types"].to_list()[0]
    assert listed == [{"type": "PERSON", "n": 2}, {"type": "GEO", "n": 1}]


def test_stated_strengths_of_both_directions_add_up_to_one_undirected_relationship():
    mentions = entity_mentions(("d#1", "A", "PERSON", ""), ("d#1", "B", "PERSON", ""), extractor="model")
    pairs = relationship_mentions(
        ("d#1", "A", "B", 7.0), ("d#2", "B", "A", 2.0), ("d#3", "B", "A", 1.0), extractor="model"
    )
    graph = merge(mentions, pairs, NO_ALIASES)
    row = graph.relationships.row(0, named=True)
    assert graph.relationships.height == 1
    assert (row["source"], row["target"]) == ("B", "A")  # two of three mentions say so
    assert row["weight"] == 10.0
    assert row["text_unit_ids"] == ["d#1", "d#2", "d#3"]


def test_cooccurrence_is_weighted_by_the_cosine_of_sentences():
    # A in 4 sentences, B in 2, both in 2: cosine = 2 / sqrt(4 * 2)
    mentions = entity_mentions(("d#1", "A", "PERSON", "x"), ("d#1", "B", "PERSON", "y")).with_columns(
        n_sentences=pl.Series([4, 2])
    )
    graph = merge(mentions, relationship_mentions(("d#1", "A", "B", 2.0)), NO_ALIASES)
    cosine = 2 / math.sqrt(4 * 2)
    assert graph.relationships["weight"].item() == round(2 * (1 + cosine) / 2, 4)


def test_a_relationship_end_that_nobody_declared_becomes_an_entity_of_type_unknown():
    mentions = entity_mentions(("d#1", "A", "PERSON", "A is known."), extractor="model")
    graph = merge(
        mentions,
        relationship_mentions(("d#1", "A", "Ghost", 1.0), extractor="model"),
        NO_ALIASES,
    )
    ghost = graph.entities.filter(pl.col("title") == "Ghost").row(0, named=True)
    assert (ghost["type"], ghost["description"], ghost["degree"]) == ("UNKNOWN", "A and Ghost in d#1.", 1)


def test_a_concept_of_the_embedded_default_needs_several_text_units():
    mentions = entity_mentions(
        ("d#1", "mirror galvanometer", "CONCEPT", "a"),
        ("d#2", "mirror galvanometer", "CONCEPT", "b"),
        ("d#1", "wet afternoon", "CONCEPT", "c"),
        ("d#1", "Thomson", "PERSON", "d"),
    )
    pairs = relationship_mentions(
        ("d#1", "Thomson", "wet afternoon", 1.0), ("d#1", "Thomson", "mirror galvanometer", 1.0)
    )
    graph = merge(mentions, pairs, NO_ALIASES)
    assert sorted(graph.entities["title"]) == ["Thomson", "mirror galvanometer"]
    assert graph.relationships.select("source", "target").rows() == [("Thomson", "mirror galvanometer")]


def test_an_alias_of_a_document_is_applied_there_only():
    mentions = entity_mentions(
        ("d1#1", "Cyrus Field", "PERSON", "a"),
        ("d1#1", "Field", "PERSON", "b"),
        ("d2#1", "Field", "NAME", "c"),
    )
    graph = merge(mentions, relationship_mentions(), aliases(("d1", "field", "cyrus field")))
    assert dict(graph.entities.select("title", "text_unit_ids").iter_rows()) == {
        "Cyrus Field": ["d1#1"],
        "Field": ["d2#1"],
    }


def test_an_alias_to_a_name_that_no_text_has_keeps_the_entity():
    mentions = entity_mentions(("d#1", "Agamemnon", "SHIP", "a"), ("d#1", "Niagara", "SHIP", "b"))
    pairs = relationship_mentions(("d#1", "Agamemnon", "Niagara", 1.0))
    graph = merge(mentions, pairs, aliases((None, "agamemnon", "hms agamemnon (1852)")))
    assert dict(graph.entities.select("title_key", "title").iter_rows()) == {
        "hms agamemnon (1852)": "Agamemnon (1852)",
        "niagara": "Niagara",
    }
    assert graph.relationships.height == 1


def test_a_relationship_of_a_thing_with_itself_is_dropped():
    mentions = entity_mentions(("d#1", "Cyrus Field", "PERSON", "a"), ("d#1", "Field", "PERSON", "b"))
    graph = merge(
        mentions,
        relationship_mentions(("d#1", "Field", "Cyrus Field", 1.0)),
        aliases((None, "field", "cyrus field")),
    )
    assert graph.relationships.is_empty()
    assert graph.entities["degree"].to_list() == [0]


titles = st.sampled_from(["Ada", "Babbage", "Cable", "the cable", "Dover", "Erin"])
kinds = st.sampled_from(["PERSON", "GEO", "NAME", "CONCEPT"])
units = st.sampled_from(["d1#1", "d1#2", "d2#1", "d3#1"])
words = st.sampled_from(["laid the cable", "sailed west", "was a ship", "kept the log"])


@pytest.mark.extended
@given(
    st.lists(st.tuples(units, titles, kinds, words), max_size=12, unique_by=lambda r: r[:3]),
    st.lists(st.tuples(units, titles, titles, st.integers(1, 9).map(float)), max_size=12, unique_by=lambda r: r[:3]),
    st.randoms(use_true_random=False),
)
def test_the_graph_does_not_depend_on_the_order_of_mentions(entity_rows, pair_rows, random):
    mentions, pairs = entity_mentions(*entity_rows), relationship_mentions(*pair_rows)
    expected = merge(mentions, pairs, NO_ALIASES)
    order, pair_order = list(range(mentions.height)), list(range(pairs.height))
    random.shuffle(order)
    random.shuffle(pair_order)
    shuffled = merge(mentions[order], pairs[pair_order], NO_ALIASES)
    assert_frame_equal(shuffled.entities.sort("id"), expected.entities.sort("id"))
    assert_frame_equal(shuffled.relationships.sort("id"), expected.relationships.sort("id"))


def test_a_pair_shows_all_its_predicates_with_direction_and_date_and_the_newest_decides_a_tie():
    mentions = entity_mentions(
        ("old#1", "PyPI", "ORGANIZATION", "It is an index."), ("new#1", "inbox.ru", "DOMAIN", "x"), extractor="model"
    )
    pairs = relationship_mentions(
        ("old#1", "PyPI", "inbox.ru", 5.0),
        ("new#1", "PyPI", "inbox.ru", 5.0),
        ("new#2", "inbox.ru", "PyPI", 5.0),
        ("plain#1", "PyPI", "inbox.ru", 5.0),
        extractor="model",
    ).with_columns(type=pl.Series(["PROHIBITED", "RE_ENABLED", "CONTACTED", ""]))
    days = [("old", date(2025, 7, 15)), ("new", date(2025, 7, 28))]
    dates = pl.DataFrame(days, schema=["document_id", "document_date"], orient="row")
    row = merge(mentions, pairs[:2], NO_ALIASES, dates=dates).relationships.row(0, named=True)
    assert (row["source"], row["type"], row["target"]) == ("PyPI", "RE_ENABLED", "inbox.ru")
    assert row["relations"] == "RE_ENABLED (2025-07-28); PROHIBITED (2025-07-15)"
    row = merge(mentions, pairs, NO_ALIASES, dates=dates).relationships.row(0, named=True)
    assert (row["source"], row["type"]) == ("inbox.ru", "CONTACTED")
    assert row["relations"] == "CONTACTED (2025-07-28); ← RE_ENABLED (2025-07-28); ← PROHIBITED (2025-07-15)"
    (undated,) = merge(mentions, pairs[:1], NO_ALIASES).relationships["relations"]
    assert undated == ""


def test_descriptions_come_by_the_date_of_their_document():
    mentions = entity_mentions(
        ("old#1", "PyPI", "ORGANIZATION", "PyPI zealously prohibited it."),
        ("new#1", "PyPI", "ORGANIZATION", "PyPI allowed it again."),
    )
    days = [("old", date(2025, 7, 15)), ("new", date(2025, 7, 28))]
    dates = pl.DataFrame(days, schema=["document_id", "document_date"], orient="row")
    given: list[pl.DataFrame] = []

    def summarize(descriptions: pl.DataFrame) -> pl.DataFrame:
        given.append(descriptions)
        return descriptions.select("key", "description").unique("key")

    merge(mentions, relationship_mentions(), NO_ALIASES, summarize=summarize, dates=dates)
    assert set(given[0].select("description", "dated").rows()) == {
        ("PyPI zealously prohibited it.", date(2025, 7, 15)),
        ("PyPI allowed it again.", date(2025, 7, 28)),
    }


def test_a_name_that_people_deny_and_a_pair_of_a_denied_type_are_left_out():
    mentions = entity_mentions(("d#1", "A", "PERSON", "a"), ("d#1", "B", "GEO", "b"), ("d#1", "C", "GEO", "c"))
    denial = entity_mentions(("f#1", "C", "", ""), extractor=schema.DENIED)
    kinds = ("FOUNDED", "LEFT", "LEFT")
    pairs = relationship_mentions(("d#1", "A", "B", 1.0), ("d#2", "A", "B", 1.0), ("d#2", "C", "B", 1.0))
    pairs = pairs.with_columns(type=pl.Series(kinds))
    denied = relationship_mentions(("f#1", "B", "A", 1.0), extractor=schema.DENIED).with_columns(type=pl.lit("LEFT"))
    graph = merge(pl.concat([mentions, denial]), pl.concat([pairs, denied]), NO_ALIASES)
    assert set(graph.entities["title"]) == {"A", "B"}
    assert graph.relationships.select("source", "type", "text_unit_ids").rows() == [("A", "FOUNDED", ["d#1"])]
    any_type = denied.with_columns(type=pl.lit(""))
    assert merge(mentions, pl.concat([pairs[:2], any_type]), NO_ALIASES).relationships.is_empty()


def test_the_type_that_a_person_states_counts_before_that_of_most_mentions():
    found = entity_mentions(*((f"d#{n}", "A", "GEO", "") for n in range(5)))
    stated = entity_mentions(("f#1", "A", "SHIP", ""), extractor=schema.STATED)
    assert merge(pl.concat([found, stated]), relationship_mentions()).entities["type"].to_list() == ["SHIP"]


def test_homonyms_are_apart_each_with_the_mentions_of_its_documents():
    mentions = entity_mentions(
        ("d1#1", "Mercury", "PLANET", "a"), ("d2#1", "Mercury", "METAL", "b"), ("d2#1", "Zinc", "METAL", "c")
    )
    split = aliases(("d1", "mercury", "mercury (planet)"), ("d2", "mercury", "quick silver"))
    split = split.with_columns(rule=pl.lit("split"))
    graph = merge(mentions, relationship_mentions(("d2#1", "Mercury", "Zinc", 1.0)), split)
    assert set(graph.entities.select("title", "type", "degree").rows()) == {
        ("Mercury (planet)", "PLANET", 0),
        ("Quick Silver", "METAL", 1),
        ("Zinc", "METAL", 1),
    }


SAID = entity_mentions(*((f"{d}#1", d.upper(), "NAME", d) for d in "abcdef"))


@pytest.mark.parametrize(
    ("having_it", "of", "n_sentences", "repeated"),
    [("abc", 5, 1, True), ("abc", 6, 1, False), ("ab", 2, 1, False), ("abc", 5, 2, False)],
    ids=["more than half", "half", "two documents", "named in another sentence too"],
)
def test_what_only_a_line_of_most_documents_names_is_left_out(having_it, of, n_sentences, repeated):
    line = [(f"{document}#1", "Hartley Bakery", "NAME", "Send it to Hartley Bakery.") for document in having_it]
    mentions = pl.concat([SAID[:of], entity_mentions(*line).with_columns(n_sentences=pl.lit(n_sentences, pl.Int64))])
    assert ("Hartley Bakery" not in set(merge(mentions, relationship_mentions()).entities["title"])) == repeated


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    no_settings(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_INPUT", str(tmp_path / "input"))
    for name, start in (("x", 0), ("y", 20), ("z", 40)):
        write(tmp_path, f"{name}.txt", " ".join(SENTENCES[start : start + 20]))
    index = index_at(tmp_path, monkeypatch)
    merge_due(index)
    return index


def write(root: Path, name: str, text: str) -> None:
    file = root / "input" / "batch" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def merge_due(index: Index, summaries_are_kept: bool = True) -> tuple[int, list[str]]:
    """Index what is due, and merge: the number of written rows, and the titles of what was summarized."""
    if not summaries_are_kept:
        retry_given_up(index)
    summarized: list[str] = []
    models = index.models()

    def summarize(descriptions: pl.DataFrame) -> pl.DataFrame:
        summarized.extend(descriptions["title"].unique().sort())
        return models.summarize(descriptions)

    for batch in scan(index).due:
        index_batch(index, batch, index.models(batch), "test")
    made = knowledge_graph.update(index, "test", replace(models, summarize=summarize))
    return sum(change.inserted + change.deleted for change in made.changes.values()), summarized


def test_nothing_is_written_or_summarized_when_nothing_changed(index: Index) -> None:
    assert merge_due(index) == (0, [])
    written, summarized = merge_due(index, summaries_are_kept=False)
    assert written == 0
    assert summarized


def test_an_edit_summarizes_what_is_said_of_it_and_gives_the_graph_of_a_fresh_index(
    index: Index, tmp_path: Path
) -> None:
    everything = merge_due(index, summaries_are_kept=False)[1]
    write(tmp_path, "y.txt", " ".join(SENTENCES[15:40]))
    written, summarized = merge_due(index)
    assert written
    assert 0 < len(summarized) < len(everything) / 2
    assert merge_due(index, summaries_are_kept=False)[0] == 0


def test_a_failed_summary_is_tried_again(index: Index) -> None:
    from graphrag_assets.contracts.usage import Usage, UsageMeter

    meter, models = UsageMeter(), index.models()
    meter.add("summarize", Usage(failures=1))
    retry_given_up(index)
    knowledge_graph.update(index, "test", replace(models, meters=(meter,)))
    assert merge_due(index)[1]
    assert merge_due(index) == (0, [])
