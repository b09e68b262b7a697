"""Contexts of text units: how they are searched, embedded and shown, and when they are recomputed."""

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.text.words import count_tokens
from tests.openai_server import running

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
SEA = "Out at sea"


@pytest.fixture
def server():
    with running() as server:
        yield server


@pytest.fixture
def voyage(project, monkeypatch):
    """A Markdown document with a text unit per sentence or heading."""
    monkeypatch.setenv("GRAPHRAG_CHUNKING", "sentences")
    project.write("ship/log.md", LOG)
    return project


@pytest.fixture
def indexed(start_with):
    """The same, indexed with the headings as contexts."""
    return start_with({"ship/log.md": LOG}, chunking="sentences")


def contexts(project) -> dict[str, str]:
    return dict(project.sql("SELECT text, context FROM text_units ORDER BY ordinal"))


def rows(project, *tables: str) -> dict[str, list]:
    return {name: project.index.working.read(f"SELECT * FROM {name} ORDER BY ALL").rows() for name in tables}


FACTS = ("entity_mentions", "relationship_mentions", "covariates")


@pytest.mark.extended
def test_a_text_unit_knows_its_document_and_headings(indexed):
    found = contexts(indexed)
    assert found["The cable parted in deep water."] == "The voyage › Out at sea › July"
    assert found["### August"] == "The voyage › Out at sea"
    assert found["# The voyage"] == "The voyage"
    assert found["Robert Halpin was honoured in London."] == "The voyage › Ashore"


def test_text_of_a_heading_is_found_and_shown_but_never_quoted(indexed):
    # "August" is only in a heading, which is a text unit of its own.
    hits = [text for (text,) in indexed.sql("SELECT text FROM search_text('August', 10)")]
    assert "William Thomson read the signals in the testing room." in hits
    index = GraphRAG(indexed.root / "index")
    context = index.context("basic", "What happened in August?", k=20)
    assert "|The voyage › Out at sea › August|William Thomson read the signals" in context.text
    (section,) = context.sections
    assert all("›" not in passage.text for passage in section.passages)
    answer = index.basic("Who read the signals?")
    assert "›" not in answer.answer
    assert answer.citations
    for citation in answer.citations:
        assert "›" not in citation.quote
        assert citation.quote == LOG[citation.start_char : citation.end_char]


@pytest.mark.parametrize("tokens", [40, 80, 200, 1000])
def test_a_context_with_headings_stays_within_its_tokens(indexed, tokens):
    for method in ("local", "basic"):
        found = GraphRAG(indexed.root / "index").context(method, "Who read the signals?", max_context_tokens=tokens)
        assert sum(count_tokens([found.text])) <= found.tokens <= tokens


@pytest.mark.long
def test_renaming_a_heading_reaches_exactly_the_units_below_it_and_extracts_nothing(indexed):
    before, facts = contexts(indexed), rows(indexed, *FACTS)
    indexed.write("ship/log.md", LOG.replace("## Out at sea", "## On the ocean"))
    indexed.index_all()
    after = contexts(indexed)
    changed = {text for text in before.keys() & after.keys() if before[text] != after[text]}
    assert changed == {text for text, context in before.items() if SEA in context}
    assert len(changed) == 6
    assert after["The cable parted in deep water."] == "The voyage › On the ocean › July"
    assert indexed.sql("SELECT count(*) FROM search_text('ocean', 20)") == [(7,)]
    assert indexed.sql("SELECT count(*) FROM search_text('sea', 20)") == [(0,)]
    own = indexed.sql("SELECT id FROM text_units WHERE text LIKE '## %'")
    kept = [row for row in facts["entity_mentions"] if row[3] not in {id_ for (id_,) in own}]
    assert set(kept) <= set(rows(indexed, *FACTS)["entity_mentions"])


@pytest.mark.long
def test_a_new_title_reaches_every_unit_of_its_document_and_no_other(project):
    project.write(
        "b/rows.jsonl", '{"id": 1, "title": "Dover", "text": "It is a port."}\n{"id": 2, "text": "So is it."}'
    )
    project.index_all()
    assert contexts(project) == {"It is a port.": "Dover", "So is it.": ""}
    ids = project.sql("SELECT id FROM text_units ORDER BY text")
    project.write("b/rows.jsonl", '{"id": 1, "title": "Cork", "text": "It is a port."}\n{"id": 2, "text": "So is it."}')
    project.index_all()
    assert contexts(project) == {"It is a port.": "Cork", "So is it.": ""}
    assert project.sql("SELECT id FROM text_units ORDER BY text") == ids
    assert project.sql("SELECT count(*) FROM search_text('cork', 9)") == [(1,)]
    assert project.sql("SELECT count(*) FROM search_text('dover', 9)") == [(0,)]


@pytest.mark.long
def test_without_contexts_the_text_alone_is_searched(indexed, monkeypatch):
    facts = rows(indexed, *FACTS)
    monkeypatch.setenv("GRAPHRAG_TEXT_UNIT_CONTEXT", "none")
    indexed.index_all()
    assert set(contexts(indexed).values()) == {""}
    assert indexed.sql("SELECT text FROM search_text('August', 9)") == [("### August",)]
    assert rows(indexed, *FACTS) == facts
    assert "\n0||# The voyage" in GraphRAG(indexed.root / "index").context("basic", "voyage").text
