"""Global contexts: a true roll-up to a level, weights, batches."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.query import GraphRAG
from graphrag_assets.query.global_search import GlobalOptions, batched, global_context, level_reports
from graphrag_assets.query.question import Question
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.words import tokenizer

from .conftest import COMMUNITIES, ENTITIES, LEVELS

QUESTION = Question("What happened?")


@pytest.mark.parametrize("level", [0, 1])
def test_a_level_speaks_of_every_entity_once(reader: Reader, level: int) -> None:
    reports = level_reports(reader, level)
    assert sorted(reports["community"]) == sorted(LEVELS[level])
    members = [entity for community in reports["community"] for entity in COMMUNITIES[community][2]]
    assert sorted(members) == list(range(len(ENTITIES)))


def test_reports_weigh_by_the_distinct_text_units_of_their_members(reader: Reader) -> None:
    # Members of 4 (Valentia, Great Eastern, Gooch) are named in units 1, 2, 3; those of 3 in 0 and 1.
    weights = level_reports(reader, 1).select("community", "text_units", "occurrence_weight").rows()
    assert weights == [(4, 3, 1.0), (3, 2, 0.6667), (1, 1, 0.3333), (2, 1, 0.3333)]


def test_reports_below_the_minimum_rank_are_not_read(reader: Reader) -> None:
    context = global_context(reader, QUESTION, GlobalOptions(min_community_rank=3.0))
    # Ranks are 5 minus the community's number; level 1 has 3, 4, 1 and 2.
    assert sorted(context.frames["reports"]["community"]) == [1, 2]


def test_a_batch_shows_the_heaviest_report_first_with_graphrag_s_columns(reader: Reader) -> None:
    (batch,) = global_context(reader, QUESTION).sections
    assert batch.text.startswith(
        "-----Reports-----\nid|title|occurrence weight|content|rank\n4|Valentia, Great Eastern, Daniel Gooch|1.0|#"
    )
    assert [passage.number for passage in batch.passages] == [4, 3, 1, 2]


def reports_of(lengths: list[int]) -> pl.DataFrame:
    n = len(lengths)
    content = ["word " * length for length in lengths]
    return pl.DataFrame(
        {
            "human_readable_id": range(n),
            "title": ["Report"] * n,
            "content": content,
            "content_tokens": [len(tokenizer().encode_ordinary(text)) for text in content],
            "summary": ["brief"] * n,
            "summary_tokens": [1] * n,
            "rank": [1.0] * n,
            "occurrence_weight": [1.0] * n,
        },
        schema_overrides={"human_readable_id": pl.Int64, "title": pl.String, "content": pl.String},
    )


@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.integers(100, 500), st.integers(0, 5))
def test_every_report_is_in_one_batch_and_no_batch_exceeds_the_limit(lengths: list[int], limit: int, seed: int) -> None:
    batches = batched(QUESTION, reports_of(lengths), GlobalOptions(max_context_tokens=limit, seed=seed)).sections
    assert sorted(number for batch in batches for number in batch.numbers) == list(range(len(lengths)))
    assert all(len(tokenizer().encode_ordinary(batch.text)) <= limit for batch in batches)


def test_a_report_too_long_for_a_batch_is_represented_by_its_summary_or_what_of_it_fits() -> None:
    reports = reports_of([500])
    (batch,) = batched(QUESTION, reports, GlobalOptions(max_context_tokens=100)).sections
    assert "0|Report|1.0|brief|1.0" in batch.text
    reports = reports.with_columns(
        summary=pl.lit("The ship sailed to the island and back. " * 40), summary_tokens=pl.lit(400)
    )
    (batch,) = batched(QUESTION, reports, GlobalOptions(max_context_tokens=60)).sections
    assert "0|Report|1.0|The ship sailed to the island and back. The ship" in batch.text
    assert batch.text.endswith("back.|1.0\n")
    assert len(tokenizer().encode_ordinary(batch.text)) <= 60


@pytest.mark.extended
def test_an_index_of_entities_that_are_alone_is_answered_from_the_text(start_with) -> None:
    project = start_with({"a.md": "The Agamemnon was a ship of the line.", "b.md": "The Niagara was a frigate."})
    assert project.sql("SELECT max(size) FROM communities") == [(1,)]
    assert project.sql("SELECT count(*) FROM community_reports") == [(0,)]
    rag = GraphRAG(project.root / "index")
    for options in ({}, {"dynamic": True}):
        assert "frigate" in rag.global_("What was the Niagara?", **options).answer
