"""The defects of the original's query module, one test each: it fails on the behavior that its docstring describes.

Numbers are those of the list of measured pitfalls.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.contracts.answering import FollowUp, Mapped
from graphrag_assets.query import METHODS, ConversationHistory, DriftOptions, GraphRAG
from graphrag_assets.query.drift import Step, next_questions
from tests.openai_server import OpenAIServer, running
from tests.query.modeled import chat_answerer, question_of, says, user_message

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
