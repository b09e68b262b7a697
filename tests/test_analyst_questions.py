"""Questions of an analyst, each answered with what docs/sql.md alone says: the words of the guide that lead to the query."""

import duckdb
import pytest

from tests.test_docs import ROOT

QUESTIONS = {
    "Which ten people does the corpus connect most?": (
        "What is most connected?",
        "SELECT title, degree FROM entities WHERE type = 'PERSON' ORDER BY degree DESC LIMIT 10",
    ),
    "The name is something like Hart's Contend. What do you have?": (
        "find_entity(text, k := 10)",
        "FROM find_entity('Hart''s Contend')",
    ),
    "Who is tied to entity number 97, and by which kind of relationship?": (
        "Every parameter for an entity takes its number",
        "SELECT title, relationship_type, weight FROM neighbors(97)",
    ),
    "How far are Morse and Gooch apart?": (
        "path_between(a, b",
        "SELECT max(step) FROM path_between('Morse', 'Daniel Gooch')",
    ),
    "Which pairs of ships are direct neighbors of each other?": (
        "a call for each row of a table",
        "SELECT e.title, n.title FROM entities e, neighbors(e.human_readable_id) n WHERE e.type = 'NAME' AND n.type = 'NAME'",
    ),
    "What did the Great Eastern do between 1865 and 1866?": (
        "lists what the ship did in",
        "FROM claims_between('1865-01-01', '1866-12-31', (SELECT list(human_readable_id) FROM entities_called('Great Eastern')))",
    ),
    "Give me the literal passage of each dated claim on Whitehouse.": (
        "A passage is `documents.text[start_char + 1:end_char]`",
        "SELECT q.start_date, d.text[q.start_char + 1:q.end_char] FROM entity_timeline('Whitehouse') q "
        "JOIN documents d ON d.id = q.document_id WHERE q.start_date IS NOT NULL",
    ),
    "Under which spellings does Whitehouse occur, and how often?": (
        "What other names does an entity have?",
        "SELECT name, count(*) FROM entity_evidence('Whitehouse') GROUP BY name",
    ),
    "Which passages are about insulation of the core?": (
        "Which passages match a question?",
        "SELECT document, document_id, text FROM search_text('insulation of the core', 5)",
    ),
    "Which documents name both Agamemnon and Niagara?": (
        "Which documents mention both",
        "SELECT document FROM entity_evidence('Agamemnon') INTERSECT SELECT document FROM entity_evidence('Niagara')",
    ),
    "Who is often mentioned with Thomson without a stated tie?": (
        "without a relationship to it",
        "FROM co_mentions('William Thomson') WHERE relationship_number IS NULL",
    ),
    "Which entities play a role like Valentia's?": ("What is like it?", "FROM similar_entities('Valentia')"),
    "What are the main themes, and how large are they?": ("What are the main themes?", "FROM community_tree(0)"),
    "Which themes is Newfoundland in?": (
        "Which themes does an entity belong to",
        "SELECT level, community FROM community_members WHERE entity_number IN (FROM entities_called('Newfoundland'))",
    ),
    "For every report, how many documents is it based on?": (
        "SELECT r.title, s.document FROM community_reports r",
        "SELECT r.title, count(DISTINCT s.document_id) FROM community_reports r, report_sources(r.community) s GROUP BY ALL",
    ),
    "Where does claim 113 come from?": ("Where does a row come from?", "FROM explain_row('covariates', 113)"),
    "Do other documents support claim 113?": (
        "Do other documents say so?",
        "FROM evidence_for(113) WHERE NOT is_source",
    ),
    "What was true on the last day of 1858?": ("facts_as_of(day)", "FROM facts_as_of('1858-12-31')"),
    "How did the facts on the Atlantic Telegraph Company change?": (
        "history_of(entity)",
        "FROM history_of('Atlantic Telegraph Company')",
    ),
    "Which names may be one and the same?": ("candidates_of(title", "FROM candidates_of('Field')"),
    "Which documents gave few entities, or errors?": (
        "Which documents gave least?",
        "SELECT document, entities, errors FROM coverage() ORDER BY entities",
    ),
    "What did the index cost by day?": ("How much did the model calls cost?", "FROM spend_by('day')"),
    "Which of my own names are in the index?": (
        "the key under which titles are compared, for joins with your own tables",
        "SELECT m.name, e.title FROM (VALUES ('GREAT EASTERN'), ('nobody')) m(name) "
        "LEFT JOIN entities e ON e.title_key = title_key(m.name)",
    ),
    "What would a model read about the Great Eastern in 1,000 tokens?": (
        "What context would a model receive?",
        "FROM local_context(['Great Eastern'], 1000)",
    ),
}
# No model was called for the sample corpus.
EMPTY = {"What did the index cost by day?"}


@pytest.fixture(scope="module")
def index(sample_index):
    with duckdb.connect(str(sample_index.root / "index" / "graphrag.duckdb"), read_only=True) as connection:
        yield connection


def test_there_are_twenty_four():
    assert len(QUESTIONS) == 24


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_guide_leads_to_a_query_that_answers(index, question):
    words, query = QUESTIONS[question]
    assert words in (ROOT / "docs/sql.md").read_text(encoding="utf-8")
    assert bool(index.execute(query).fetchall()) == (question not in EMPTY)
