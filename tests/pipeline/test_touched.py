"""Merging again what a change touches gives the graph that merging everything gives."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_assets.pipeline.alias_decisions import decided_aliases
from graphrag_assets.pipeline.merging import Graph, merge
from graphrag_assets.pipeline.resolution import ALIAS_SCHEMA, propose_aliases
from graphrag_assets.pipeline.touched import Stored, part_of, replacement, touched_keys
from tests.pipeline.frames import entity_mentions, relationship_mentions

NAMES = ("Cyrus Field", "Field", "The Great Eastern", "Great Eastern", "cable", "cables", "Valentia", "Cyrus W. Field")
TYPES = ("CONCEPT", "PERSON", "ORGANIZATION", "UNKNOWN")
units = st.sampled_from(("a#1", "a#2", "b#1", "c#1"))
names = st.sampled_from(NAMES)
texts = st.sampled_from(("It was laid.", "He came aboard.", ""))
entities = st.frozensets(st.tuples(units, names, st.sampled_from(TYPES), texts), max_size=8)
pairs = st.frozensets(st.tuples(units, names, names, st.sampled_from((1.0, 2.0))), max_size=6)
facts = st.tuples(entities, pairs)
decided = st.none() | st.tuples(st.none() | st.just("a"), names, names, st.booleans())


def mentions_of(some: tuple[frozenset, frozenset]) -> tuple[pl.DataFrame, pl.DataFrame]:
    return entity_mentions(*sorted(some[0])), relationship_mentions(*sorted(some[1]))


def aliases_of(mentions: pl.DataFrame, decision: tuple | None) -> pl.DataFrame:
    rows = []
    if decision:
        document, alias, stands_for, accepted = decision
        rows = [(document, alias.lower(), stands_for.lower(), "user", accepted)]
    return decided_aliases(
        propose_aliases(mentions), pl.DataFrame(rows, schema=ALIAS_SCHEMA, orient="row"), [], read_named=pytest.fail
    )


def rows_with(frame: pl.DataFrame, *columns: str, shown: tuple[str, ...] = ()):
    return lambda given: frame.filter(pl.any_horizontal(pl.col(columns).is_in(given.implode()))).select(
        shown or frame.columns
    )


def changed_keys(before: pl.DataFrame, after: pl.DataFrame, *columns: str) -> set[str]:
    in_both = {"on": before.columns, "how": "anti", "nulls_equal": True}
    changed = pl.concat([before.join(after, **in_both), after.join(before, **in_both)])
    return {key for column in columns for key in changed[column]}


def with_degrees_of(moved: pl.Series, made: Graph) -> pl.DataFrame:
    """The relationships with the combined degrees of those that have one of these ends, as they are updated in place."""
    degrees = dict(made.entities.select("id", "degree").iter_rows())
    sums = [
        degrees[source] + degrees[target] for source, target in made.relationships[["source_id", "target_id"]].rows()
    ]
    has_moved = pl.any_horizontal(pl.col("source_id", "target_id").is_in(moved.implode()))
    updated = pl.when(has_moved).then(pl.Series(sums, dtype=pl.Int64)).otherwise("combined_degree")
    return made.relationships.with_columns(combined_degree=updated)


@pytest.mark.extended
@settings(max_examples=40, deadline=None)
@given(facts, facts, decided, decided)
def test_merging_what_changed_is_merging_everything(
    before: tuple[frozenset, frozenset],
    after: tuple[frozenset, frozenset],
    first: tuple | None,
    second: tuple | None,
) -> None:
    (mentions, related), (new_mentions, new_related) = mentions_of(before), mentions_of(after)
    old_aliases, aliases = aliases_of(mentions, first), aliases_of(new_mentions, second)
    stored = merge(mentions, related, old_aliases)
    changed = changed_keys(mentions, new_mentions, "title_key") | changed_keys(
        related, new_related, "source_key", "target_key"
    )
    part = part_of(
        touched_keys(changed, old_aliases, aliases),
        aliases,
        rows_with(new_mentions, "title_key"),
        rows_with(new_mentions.with_columns(description=pl.lit("")), "title_key"),
        rows_with(new_related, "source_key", "target_key"),
        rows_with(stored.entities, "id", shown=("title_key", "title", "type", "n_sentences")),
    )
    rows = replacement(
        part,
        merge(part.mentions, part.pairs, aliases, known=part.known),
        Stored(
            rows_with(stored.entities, "id"),
            rows_with(stored.entities.select("id", "degree"), "id"),
            rows_with(stored.relationships.select("id", "source_id", "target_id"), "source_id", "target_id"),
        ),
    )
    made = Graph(
        pl.concat([stored.entities.filter(~pl.col("id").is_in(rows.entity_ids.implode())), rows.graph.entities]).sort(
            "id"
        ),
        pl.concat(
            [
                stored.relationships.filter(~pl.col("id").is_in(rows.relationship_ids.implode())),
                rows.graph.relationships,
            ]
        ).sort("id"),
    )
    expected = merge(new_mentions, new_related, aliases)
    assert_frame_equal(made.entities, expected.entities)
    assert_frame_equal(with_degrees_of(rows.moved, made), expected.relationships)
