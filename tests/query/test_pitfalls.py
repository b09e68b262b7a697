"""The defects of the original's query module, one test each: it fails on the behavior that its docstring describes.

Numbers are those of the list of measured pitfalls.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.contracts.answering import Evidence, FollowUp, Mapped, Reply
from graphrag_assets.embedded.answerer import EmbeddedAnswerer
from graphrag_assets.llm.model_errors import RetriesExhausted
from graphrag_assets.query import METHODS, ConversationHistory, DriftOptions, GraphRAG
from graphrag_assets.query.drift import Step, next_questions
from graphrag_assets.store.publication_reader import Reader
from tests.openai_server import OpenAIServer, running
from tests.query.modeled import chat_answerer, question_of, says, user_message

from .conftest import COMMUNITIES, ENTITIES, LEVELS

QUESTION = "Who commanded the Niagara?"


def raised_by(body: dict[str, Any]) -> dict[str, Any]:
    """What a step of DRIFT raises: the worst question first."""
    question = question_of(body)
    raised = [("What is a penguin?", 10), ("Who was Daniel Gooch?", 90), ("Where is Valentia?", 50)]
    return {
        "points": [{"description": f"Of {question}", "score": 50}],
        "follow_ups": [{"question": text, "score": score} for text, score in raised],
    }


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    content = says(text="He did. [Data: Sources (0)]", DriftAnswer=raised_by, MapAnswer={"points": []})
    with running(content=content) as server:
        yield server


@pytest.fixture
def modeled(server: OpenAIServer, index_file: Path, tmp_path: Path) -> GraphRAG:
    return GraphRAG(index_file, answerer=chat_answerer(server, tmp_path, max_retries=0))


@pytest.mark.parametrize("top_k", [1, 2, 4])
def test_13_top_k_entities_is_exactly_that_many(rag: GraphRAG, top_k: int) -> None:
    """`top_k_entities = 10` gives 20: the oversampled candidates are never cut back."""
    named = {"include_entity_names": ["Penguin"]}
    for options in ({}, named):
        frame = rag.context("local", QUESTION, top_k_entities=top_k, **options).frames["entities"]
        assert frame.height == top_k


@pytest.mark.extended
def test_14_a_report_too_long_is_not_the_end_of_the_reports(rag: GraphRAG) -> None:
    """9 of 21 questions got no report at all: the section ends at the first report that does not fit."""
    everything = rag.context("local", QUESTION).frames["reports"]
    assert everything["human_readable_id"].to_list()[0] == 0  # the longest comes first
    for budget in range(250, 1500, 50):
        section = rag.context("local", QUESTION, max_context_tokens=budget, community_prop=0.4).sections[0]
        assert section.passages, budget
    # The first one is there too, by its summary, as soon as there is room for that.
    assert 0 in rag.context("local", QUESTION, max_context_tokens=400, community_prop=0.4).sections[0].numbers


def test_15_local_steps_of_drift_hold_rows_of_the_graph(rag: GraphRAG) -> None:
    """Its shares of text (0.9) and reports (0.1) leave 0 tokens for entities and relationships."""
    frames = rag.drift(QUESTION).context
    for table in ("entities", "relationships", "sources"):
        assert frames[table]["in_context"].any()


@pytest.mark.extended
def test_15_drift_asks_the_best_follow_ups_first_each_once_within_its_calls(modeled: GraphRAG, server) -> None:
    """Scores of follow-ups are never used; near-duplicates are all sent; up to 67 calls; actions in random order."""
    actions = modeled.drift(QUESTION, breadth=3, depth=3, max_calls=20).actions
    asked = [action.question for action in actions if action.depth]
    assert asked == [QUESTION, "Who was Daniel Gooch?", "Where is Valentia?", "What is a penguin?"]
    assert len(server.chats) <= 20
    assert max(Counter(asked).values()) == 1


def test_15_follow_ups_of_all_steps_are_ranked_together() -> None:
    """Unanswered actions are taken in random order, whatever their scores."""

    def step(*raised: tuple[str, float]) -> Step:
        return Step(QUESTION, 0, None, Mapped(follow_ups=tuple(FollowUp(*one) for one in raised)))

    steps = [step(("What is a penguin?", 10)), step(("Who was Daniel Gooch?", 90), ("Who was Daniel Gooch??", 80))]
    assert next_questions(QUESTION, steps, 1, DriftOptions(breadth=3)) == [
        (QUESTION, None),
        ("Who was Daniel Gooch?", 1),
        ("What is a penguin?", 0),
    ]
    assert len(next_questions(QUESTION, steps, 1, DriftOptions(breadth=2))) == 2


@pytest.mark.extended
def test_15_a_second_drift_search_knows_nothing_of_the_first(modeled: GraphRAG) -> None:
    """The state object lives in the engine: a second query reuses the first one's graph."""
    first = modeled.drift("Who was Daniel Gooch?").actions
    second = modeled.drift(QUESTION).actions
    assert second[0].question == QUESTION
    assert {action.question for action in second if not action.depth} == {QUESTION}
    assert [action.question for action in first] != [action.question for action in second]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_16_global_search_reads_one_report_for_every_entity(rag: GraphRAG, level: int) -> None:
    """The roll-up does nothing: level 2 reads levels 0, 1 and 2 together, parents beside their children."""
    read = rag.context("global", "What happened?", community_level=level).frames["reports"]["community"].to_list()
    assert sorted(read) == sorted(LEVELS[min(level, 1)])
    members = Counter(entity for community in read for entity in COMMUNITIES[community][2])
    assert members == Counter(range(len(ENTITIES)))


def test_17_basic_search_keeps_the_order_of_similarity(rag: GraphRAG) -> None:
    """Rows are taken in table order."""
    for question, best in (
        ("When did the Great Eastern leave Valentia?", 3),
        ("What did the oil of the lamps cost?", 5),
    ):
        sources = rag.context("basic", question).sections[0]
        assert sources.passages[0].number == best
        assert sources.text.split("\n")[2].startswith(f"{best}|")


def test_17_basic_search_answers_without_streaming(rag: GraphRAG, modeled: GraphRAG) -> None:
    """Its non-streaming call always returns ""."""
    assert rag.basic(QUESTION).answer
    assert modeled.basic(QUESTION).answer == "He did. [Data: Sources (0)]"


@pytest.mark.parametrize("method", METHODS)
def test_18_the_newest_turns_of_a_conversation_are_kept(modeled: GraphRAG, server, method: str) -> None:
    """The first five turns are taken: the oldest."""
    history = ConversationHistory()
    for number in range(9):
        history.add(f"Question number {number}?", f"Answer number {number}.")
    server.content = says(
        text="He did.",
        MapAnswer={"points": [{"description": "He did.", "score": 9}]},
        DriftAnswer={"points": [{"description": "He did.", "score": 9}], "follow_ups": []},
        SubQuestions={"question": QUESTION, "questions": []},
        RelevantUnits={"units": [{"id": 1, "sentences": [1]}]},
        PlannedSteps={"steps": [{"variable": "who", "question": QUESTION}]},
        StepValues={"values": [{"value": "He", "statement": "He did. [Data: Sources (0)]"}]},
    )
    modeled.search(method, QUESTION, history=history, conversation_history_max_turns=3)
    said = user_message(server.chats[-1].body)
    assert [f"number {n}?" in said for n in range(9)] == [False] * 6 + [True] * 3
    assert said.index("number 6?") < said.index("number 8?")
    # Of a small budget the newest has the most.
    tight = modeled.context(method, QUESTION, history=history, max_context_tokens=60)
    assert tight.history is not None
    assert "number 8?" in tight.history.text
    assert "number 4?" not in tight.history.text


@pytest.mark.parametrize("method", METHODS)
def test_19_an_error_is_raised_and_no_empty_answer(modeled: GraphRAG, server, method: str) -> None:
    """Errors are swallowed: an empty answer."""
    server.fail_next(*["500"] * 30)
    with pytest.raises(RetriesExhausted, match="500"):
        modeled.search(method, QUESTION)


class Inventor(EmbeddedAnswerer):
    """Cites one row that it was given and two that it was not; one of these exists."""

    async def arespond(self, question: str, evidence: Evidence, *_: Any) -> Reply:
        return Reply("He did. [Data: Sources (0, 99); Entities (7)]")


def test_20_cited_rows_are_distinguished_from_offered_ones_and_invented_ids_are_marked(index_file: Path) -> None:
    """The context returned is what was offered, not what was cited; cited ids are never checked."""
    answer = GraphRAG(index_file, answerer=Inventor()).local(QUESTION, top_k_entities=3)
    assert answer.answer == "He did. [Data: Sources (0)] [unresolved: Sources (99); Entities (7)]"
    assert answer.unresolved == ["Sources (99)", "Entities (7)"]
    sources = answer.context["sources"]
    assert sources.filter("cited")["human_readable_id"].to_list() == [0]
    assert sources["in_context"].sum() > 1
    assert not answer.context["entities"]["cited"].any()
    (citation,) = answer.citations
    assert (citation.document, citation.source) == ("Document 0", "b/document-0.txt")
    assert (citation.start_char, citation.end_char) == (0, 107)


def test_21_a_search_fetches_what_it_shows_and_not_the_tables(sample_index, monkeypatch) -> None:
    """Everything is loaded into Python objects for each call."""
    rag = GraphRAG(sample_index.root / "index")
    whole = sum(
        rag.sql(f"SELECT count(*) FROM {table}").item()
        for table in (
            "entities",
            "relationships",
            "text_units",
            "community_reports",
            "covariates",
            "search.entity_text_units",
        )
    )
    fetched = []
    rows = Reader.rows

    def counted(self: Reader, *given: Any) -> Any:
        found = rows(self, *given)
        fetched.append(found.height)
        return found

    monkeypatch.setattr(Reader, "rows", counted)
    for method in ("local", "basic"):
        fetched.clear()
        rag.context(method, "Who commanded the Great Eastern when the cable of 1865 was lost?")
        assert 0 < sum(fetched) < whole / 4
