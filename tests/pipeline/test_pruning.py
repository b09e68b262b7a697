"""Pruning: what is left out of the graph, in which order, and that it depends on the facts alone."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.pipeline.merging import Graph, merge
from graphrag_assets.pipeline.pruning import PruningOptions
from tests.pipeline.frames import NO_ALIASES, entity_mentions, relationship_mentions

# Of A, B and C there are three text units each, of D two, of E one. C and D meet least.
MENTIONS = [
    (f"d#{unit}", name, "PERSON", "")
    for name, units in zip("ABCDE", (3, 3, 3, 2, 1), strict=True)
    for unit in range(units)
]
PAIRS = [
    ("d#0", "A", "B", 9.0),
    ("d#0", "B", "C", 8.0),
    ("d#0", "A", "C", 7.0),
    ("d#0", "C", "D", 1.0),
    ("d#0", "A", "E", 5.0),
]


def graph(**options: float) -> Graph:
    return merge(
        entity_mentions(*MENTIONS, extractor="model"),
        relationship_mentions(*PAIRS, extractor="model"),
        NO_ALIASES,
        pruning=PruningOptions(**options),
    )


@pytest.mark.parametrize(
    ("options", "entities", "relationships", "pruned"),
    [
        ({}, "ABCDE", "AB AC AE BC CD", (0, 0)),
        ({"min_frequency": 2}, "ABCD", "AB AC BC CD", (1, 1)),
        ({"min_degree": 2}, "ABC", "AB AC BC", (2, 2)),
        ({"min_frequency": 2, "min_degree": 2}, "ABC", "AB AC BC", (2, 2)),
        ({"min_weight_percentile": 40}, "ABCDE", "AB AC BC", (0, 2)),
        ({"min_frequency": 4}, "", "", (5, 5)),
    ],
)
def test_what_is_left_out(options, entities, relationships, pruned):
    found = graph(**options)
    assert "".join(sorted(found.entities["title"])) == entities
    pairs = sorted("".join(sorted(pair)) for pair in found.relationships.select("source", "target").rows())
    assert pairs == relationships.split()
    assert (found.n_pruned_entities, found.n_pruned_relationships) == pruned


def test_degrees_are_those_of_the_pruned_graph():
    degrees = dict(graph(min_frequency=2).entities.select("title", "degree").iter_rows())
    assert degrees == {"A": 2, "B": 2, "C": 3, "D": 1}


def test_what_is_pruned_is_not_summarized():
    asked = []

    def summarize(descriptions: pl.DataFrame) -> pl.DataFrame:
        asked.extend(descriptions["title"])
        return descriptions.select("key", "description").unique("key")

    merge(
        entity_mentions(*MENTIONS, extractor="model"),
        relationship_mentions(*PAIRS, extractor="model"),
        NO_ALIASES,
        summarize=summarize,
        pruning=PruningOptions(min_frequency=2, min_weight_percentile=40),
    )
    assert set(asked) == {"A", "B", "C", "D", "a – b", "b – c"}


@pytest.mark.extended
@given(st.permutations(PAIRS), st.permutations(MENTIONS))
def test_the_order_of_facts_does_not_matter(pairs, mentions):
    options = PruningOptions(min_frequency=2, min_degree=2, min_weight_percentile=30)
    found = merge(
        entity_mentions(*mentions, extractor="model"),
        relationship_mentions(*pairs, extractor="model"),
        NO_ALIASES,
        pruning=options,
    )
    expected = graph(min_frequency=2, min_degree=2, min_weight_percentile=30)
    assert found.entities["id"].equals(expected.entities["id"])
    assert found.relationships.select("id", "weight").equals(expected.relationships.select("id", "weight"))
