"""Contexts of text units: how they are searched, embedded and shown, and when they are recomputed."""

from collections import Counter

import pytest

from graphrag_assets.extras.cost_preview.preview import plan_index
from graphrag_assets.query import GraphRAG
from graphrag_assets.text.words import count_tokens
from tests.assets.test_language_models import copy_index, use
from tests.limits import limit_calls
from tests.openai_server import OpenAIServer, running

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


# --- written by the chat model --------------------------------------------------------------------------


@pytest.fixture
def modeled(voyage, server, monkeypatch):
    use(monkeypatch, server)
    monkeypatch.setenv("GRAPHRAG_TEXT_UNIT_CONTEXT", "model")
    return voyage


@pytest.fixture
def modeled_index(modeled, shared_folder):
    """The same, indexed: `server` has no requests yet."""
    return copy_index(modeled, shared_folder, {"ship/log.md": LOG}, chunking="sentences", text_unit_context="model")


@pytest.fixture
def heading_index(modeled, shared_folder, monkeypatch):
    """The same, indexed by the models with the headings as contexts."""
    monkeypatch.setenv("GRAPHRAG_TEXT_UNIT_CONTEXT", "headings")
    return copy_index(modeled, shared_folder, {"ship/log.md": LOG}, chunking="sentences", text_unit_context="headings")


def sent(server: OpenAIServer, since: int = 0) -> Counter[str]:
    return Counter(request.task for request in server.requests[since:])


@pytest.mark.extended
def test_contexts_are_written_below_the_headings(modeled_index):
    found = contexts(modeled_index)
    written = found["The cable parted in deep water."]
    assert written.startswith("The voyage › Out at sea › July: ")
    assert len(written) > len("The voyage › Out at sea › July: ")
    assert modeled_index.sql("SELECT count(*) FROM text_units WHERE context_fingerprint IS NULL") == [(0,)]
    calls = "SELECT count(*) FROM llm_calls WHERE task = 'text_unit_context' AND batch = 'ship'"
    assert modeled_index.sql(calls) == [(len(found),)]


@pytest.mark.long
def test_chat_model_is_called_once_per_text_unit_with_the_document_first_and_the_passage_last(modeled, server):
    modeled.index_all()
    assert sent(server)["UnitContext"] == len(contexts(modeled))
    asked = [request.body["messages"] for request in server.chats if request.task == "UnitContext"]
    assert len({messages[0]["content"] for messages in asked}) == 1
    parts = [messages[1]["content"].partition("\n\n<passage ") for messages in asked]
    assert len({document for document, _, _ in parts}) == 1
    assert LOG.strip() in parts[0][0]
    assert len({passage for _, _, passage in parts}) == len(asked)


@pytest.mark.long
def test_second_run_sends_nothing_and_a_lost_database_is_rebuilt_from_the_ledger(modeled_index, server):
    found = rows(modeled_index, *FACTS, "text_units", "embeddings")
    modeled_index.index_all()
    modeled_index.run("update_index", ops={"batch_state": {"config": {"which": "ALL"}}})
    (modeled_index.root / "index" / "working.duckdb").unlink()
    modeled_index.index_all()
    assert server.requests == []
    assert rows(modeled_index, *FACTS, "text_units", "embeddings") == found


@pytest.mark.long
def test_switching_embeds_again_and_extracts_again_only_without_contexts(heading_index, server, monkeypatch):
    facts, units = rows(heading_index, *FACTS), len(contexts(heading_index))
    monkeypatch.setenv("GRAPHRAG_TEXT_UNIT_CONTEXT", "model")
    heading_index.index_all()
    assert set(sent(server)) == {"UnitContext", "embedding"}
    assert sent(server)["UnitContext"] == units
    assert rows(heading_index, *FACTS) == facts
    before = len(server.requests)
    for mode in ("headings", "model"):  # everything is known: even the vectors are in the ledger
        monkeypatch.setenv("GRAPHRAG_TEXT_UNIT_CONTEXT", mode)
        heading_index.index_all()
    assert len(server.requests) == before
    monkeypatch.setenv("GRAPHRAG_TEXT_UNIT_CONTEXT", "none")
    heading_index.index_all()
    asked = sent(server, before)  # their requests have no line of the place any more
    assert asked["ExtractGraphWithClaims"] + asked["ExtractGraphsWithClaims"] > 0


@pytest.mark.long
def test_edit_requests_contexts_of_its_document_and_extracts_the_edited_unit(modeled, server):
    modeled.write("ship/other.md", "# Other\n\nJohn Brett met Cyrus Field in Dover.")
    modeled.index_all()
    before, units = len(server.requests), modeled.sql("SELECT count(*) FROM text_units WHERE context LIKE 'The voy%'")
    modeled.write("ship/log.md", LOG.replace("at once", "at dawn"))
    modeled.index_all()
    asked = sent(server, before)
    assert asked["UnitContext"] == units[0][0]
    assert asked["ExtractGraphWithClaims"] == 1  # one text unit


@pytest.mark.long
def test_failed_context_falls_back_to_headings_and_is_retried_by_the_next_run(modeled, server, monkeypatch):
    limit_calls(monkeypatch, max_retries=0)
    answer = server.content

    def refuse(body):
        if "grapnels" in body["messages"][1]["content"].partition("<passage")[2]:
            return "no JSON at all"
        return answer(body)

    server.content = refuse
    modeled.index_all()
    grapnels = "Samuel Canning ordered the grapnels to be lowered at once."
    assert contexts(modeled)[grapnels] == "The voyage › Out at sea › July"
    errors = modeled.sql("SELECT batch, stage, source, hint FROM index_errors")
    ((batch, stage, source, hint),) = errors
    assert (batch, stage) == ("ship", "context")
    assert [(source,)] == modeled.sql(f"SELECT id FROM text_units WHERE text = '{grapnels}'")
    assert "only failed contexts are requested" in hint
    server.content, before = answer, len(server.requests)
    modeled.run("update_index", ops={"batch_state": {"config": {"which": "FAILED"}}})
    assert sent(server, before) == {"UnitContext": 1, "embedding": 1}
    assert contexts(modeled)[grapnels].startswith("The voyage › Out at sea › July: ")
    assert modeled.sql("SELECT count(*) FROM index_errors") == [(0,)]


@pytest.mark.long
def test_preview_counts_contexts(modeled, server):
    planned = dict(plan_index(modeled.index).costs.select("task", "calls").iter_rows())
    assert server.requests == []
    modeled.index_all()
    assert planned["text_unit_context"] == sent(server)["UnitContext"] > 10
    assert plan_index(modeled.index).costs["calls"].sum() == 0
