"""Aliases brought up to date after a change are those proposed from all mentions."""

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_assets.pipeline.alias_updates import LAST_WORD, update_aliases
from graphrag_assets.pipeline.document_aliases import document_aliases
from graphrag_assets.pipeline.resolution import alias_table, propose_aliases, resolve_names
from graphrag_assets.text.words import title_key

RELATED = (
    ("Cyrus Field", "Mary Field", "Cyrus W. Field", "C. Field", "Field", "The Field", "Fields", "Cyrus"),
    ("HMS Agamemnon", "USS Agamemnon", "Agamemnon", "The Agamemnon", "Agamemnon (play)"),
    ("National Bank Trust", "National-Bank Trust", "NBT", "N.B.T.", "Trust", "Josef K.", "J. K.", "K."),
    ("Harbour Trust", "Harbour Trust (HT)", "Hill Tower (HT)", "Hill Towers", "HT", "The HT", "Hill Tower"),
    ("Москва", "Москве", "Петров", "Петрова", "Петровым", "Иван Петров", "Ивана Петрова"),
    ("Deutscher Rat", "Deutschen Rates", "Rat", "DER", "Deutscher Erster Rat (DER)"),
)
TYPES = ("PERSON", "NAME", "ORGANIZATION", "GEO", "CONCEPT")


@st.composite
def changes(draw):
    """Mentions that stay, that go and that come, of names that may be one thing."""
    titles, types = draw(st.sampled_from(RELATED)), TYPES[: draw(st.integers(1, 5))]
    rows = st.tuples(st.sampled_from("abcd"), st.sampled_from(titles), st.sampled_from(types))
    return draw(st.lists(rows, max_size=8)), draw(st.lists(rows, max_size=2)), draw(st.lists(rows, max_size=2))


def frame(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    keyed = [(document, title, title_key(title), kind) for document, title, kind in rows]
    columns = ("document_id", "title", "title_key", "type")
    return pl.DataFrame(keyed, dict.fromkeys(columns, pl.String), orient="row")


def rows_of(table: pl.DataFrame):
    def read(column, values):
        wanted = table["title_key"].str.split(" ").list.last() if column == LAST_WORD else table[column]
        return table.filter(wanted.is_in(list(values)))

    return read


@pytest.mark.extended
@settings(max_examples=100, deadline=None)
@given(changes())
@example(([("a", "Field", "PERSON"), ("b", "Cyrus Field", "PERSON")], [], [("c", "Mary Field", "PERSON")]))
@example(([("a", "Field", "PERSON"), ("b", "Cyrus Field", "PERSON")], [], [("c", "Field", "GEO")] * 2))
def test_any_change_gives_the_aliases_of_all_mentions(change):
    kept, gone, new = change
    before, after = frame([*kept, *gone]), frame([*kept, *new])
    names = resolve_names(before)
    stored = alias_table(names, document_aliases(before, names))
    changed = frame([*gone, *new])
    keys, documents = set(changed["title_key"]), set(changed["document_id"])
    updated = update_aliases(keys, documents, stored, rows_of(after), rows_of(names))
    assert_frame_equal(updated.aliases, propose_aliases(after))
    others = names.filter(~pl.col("family").is_in(updated.families.implode()))
    assert_frame_equal(pl.concat([others, updated.names]).sort("title_key"), resolve_names(after))
