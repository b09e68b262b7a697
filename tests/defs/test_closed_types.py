"""Closed lists of types, in an index: what is left out is counted per text unit, and stays counted."""

import pytest

from tests.defs.test_language_models import modeled, server  # noqa: F401

LISTED = "William Thomson invented the mirror galvanometer"
"""A sentence: types of the test server are sentences of the text."""
LOSSES = "SELECT source, error FROM index_errors WHERE stage = 'unlisted_types' ORDER BY ALL"


@pytest.mark.extended
def test_left_out_relationships_are_counted_and_stay_counted_until_their_text_is_gone(modeled, server, monkeypatch):  # noqa: F811
    monkeypatch.setenv("GRAPHRAG_RELATIONSHIP_TYPES", LISTED)
    monkeypatch.setenv("GRAPHRAG_STRICT_TYPES", "relationships")
    modeled.index_all()
    assert modeled.sql("SELECT DISTINCT type FROM relationship_mentions") == [(LISTED.upper().replace(" ", "_"),)]
    losses = modeled.sql(LOSSES)
    assert len(losses) == 3
    assert all(" relationships of types that are not listed were left out: " in error for _, error in losses)
    server.requests.clear()
    modeled.index_all()
    assert server.chats == []
    assert modeled.sql(LOSSES) == losses
    gone = modeled.sql("SELECT t.id FROM text_units t WHERE text LIKE '%galvanometer%'")
    modeled.write("one/b.md", "Cyrus Field came back.")
    modeled.index_all()
    kept = [row for row in losses if row[:1] not in gone]
    assert len(kept) == 2
    assert set(kept) <= set(modeled.sql(LOSSES))
    assert not {source for source, _ in modeled.sql(LOSSES)} & {unit for (unit,) in gone}
