"""Linking of questions to the graph by a model: names and keywords of one request, over real HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG
from tests.openai_server import OpenAIServer, running
from tests.query.modeled import chat_answerer, says

QUESTION = "What was the largest vessel?"
GREAT_EASTERN_MEANT = {"names": ["Great Eastern"], "low_level": ["ship"], "high_level": ["penguins near the ice"]}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    drift = {"points": [{"description": "It did. [Data: Reports (0)]", "score": 50}], "follow_ups": []}
    with running(
        content=says(
            QuestionLinks=GREAT_EASTERN_MEANT,
            DriftAnswer=drift,
            SubQuestions={"question": QUESTION, "questions": []},
            RelevantUnits={"units": [{"id": 1, "sentences": [1]}]},
            PlannedSteps={"steps": [{"variable": "answer", "question": QUESTION}]},
            StepValues={"values": [{"value": "Great Eastern", "statement": "It was she. [Data: Entities (4)]"}]},
            MapAnswer={"points": [{"description": "It did.", "score": 50}]},
            text="It did.",
        )
    ) as server:
        yield server


@pytest.fixture
def rag(server: OpenAIServer, index_file: Path, tmp_path: Path) -> GraphRAG:
    return GraphRAG(index_file, answerer=chat_answerer(server, tmp_path, max_retries=0))


def test_a_search_links_its_question_with_one_request_which_the_ledger_keeps(rag: GraphRAG, server) -> None:
    for ask in (rag.local, rag.drift, rag.lazy, rag.planned):
        answer = ask(QUESTION, linking="model")
        assert answer.errors == []
        assert "link" in answer.usage
    assert server.counts["task QuestionLinks"] == 1
    sent = len(server.chats)
    assert rag.local(QUESTION, linking="model").total_usage.calls == 0
    assert len(server.chats) == sent
    assert rag.local("Which vessel was largest?", linking="model").usage["link"].calls == 1
    assert rag.drift(QUESTION, linking="model", max_calls=4, depth=3).total_usage.calls <= 4


def test_where_the_request_fails_the_question_is_linked_by_names(rag: GraphRAG, server) -> None:
    server.fail_next("400")
    answer = rag.local(QUESTION, linking="model")
    assert [failure.part for failure in answer.errors] == ["link"]
    assert answer.answer == "It did."
    by_names = rag.local(QUESTION)
    assert answer.context["entities"].equals(by_names.context["entities"])


def test_without_a_model_the_question_is_linked_by_names(index_file: Path) -> None:
    rag = GraphRAG(index_file)
    for method in ("local", "drift", "lazy", "planned"):
        by_model, by_names = rag.search(method, QUESTION, linking="model"), rag.search(method, QUESTION)
        assert (by_model.answer, by_model.errors) == (by_names.answer, [])
