"""Linking of questions to the graph by a model: names and keywords of one request, over real HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.query import GraphRAG
from tests.openai_server import OpenAIServer, running
from tests.query.modeled import chat_answerer, says

LINKS = {
    "names": ["Wildman Whitehouse"],
    "low_level_keywords": ["electrician", "induction coils"],
    "high_level": ["failure of the cable"],
}
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


def titles(context: Any) -> list[str]:
    return context.frames["entities"]["title"].to_list()


@pytest.mark.extended
@pytest.mark.parametrize(
    "question", ["Who was the surgeon who ruined the cable?", "Which physician spoiled the telegraph line?"]
)
def test_something_that_the_question_only_describes_is_found_by_the_model(server, sample_index, tmp_path, question):
    server.content = says(QuestionLinks=LINKS)
    rag = GraphRAG(sample_index.root / "index", answerer=chat_answerer(server, tmp_path))
    by_names = rag.context("local", question, top_k_entities=5)
    by_model = rag.context("local", question, top_k_entities=5, linking="model")
    assert "Wildman Whitehouse" not in titles(by_names)
    assert titles(by_model)[0] == "Wildman Whitehouse"
    first = by_model.frames["sources"]["document"][0]
    assert first == "The electrician at Valentia: Whitehouse and his coils"
    assert by_names.frames["sources"]["document"][0] != first
    assert len(server.chats) == 1


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
