"""Contexts of text units: how they are searched, embedded and shown, and when they are recomputed."""

import pytest

from graphrag_assets.query import GraphRAG

LOG = """# The voyage

Captain James Anderson commanded the Great Eastern. Cyrus Field sailed with Samuel Canning to Newfoundland.

## Out at sea

### July

The cable parted in deep water. Samuel Canning ordered the grapnels to be lowered at once.

### August

William Thomson read the signals in the testing room. The mirror galvanometer never failed him.

## Ashore

Robert Halpin was honoured in London. Daniel Gooch sent the first message to the Queen.
"""


@pytest.fixture
def indexed(start_with):
    """A Markdown document with a text unit for every sentence or two, indexed with the headings as contexts."""
    return start_with({"ship/log.md": LOG}, chunk_size="50")


def test_text_of_a_heading_is_found_and_shown_but_never_quoted(indexed):
    # "Ashore" is only in a heading, which another text unit has.
    index = GraphRAG(indexed.root / "index")
    assert "Daniel Gooch sent the first message to the Queen." in list(index.retrieve("ashore", 10)["text"])
    context = index.context("basic", "What happened ashore?", k=20)
    assert "|The voyage › Ashore|Daniel Gooch sent the first message" in context.text
    (section,) = context.sections
    assert all("›" not in passage.text for passage in section.passages)
    answer = index.basic("Who sent the first message?")
    assert "›" not in answer.answer
    assert answer.citations
    for citation in answer.citations:
        assert "›" not in citation.quote
        assert citation.quote == LOG[citation.start_char : citation.end_char]
