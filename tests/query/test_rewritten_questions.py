"""A question of a conversation is rewritten once, and searched for and answered without the conversation."""

from typing import Any

import pytest

from graphrag_assets.query import METHODS, GraphRAG
from tests.openai_server import OpenAIServer
from tests.query.modeled import says, user_message

HISTORY = [("user", "Which ship met the Agamemnon?"), ("assistant", "The Niagara did, on 26 June.")]
ALONE = "Who commanded the Niagara?"
FOLLOW_UP = "And who commanded her?"
SAID = "William Hudson. [Data: Sources (0)]"


@pytest.fixture
def server(server: OpenAIServer) -> OpenAIServer:
    def step(body: dict[str, Any]) -> dict[str, Any]:
        return {"points": [{"description": SAID, "score": 80}], "follow_ups": [{"question": "What then?", "score": 9}]}

    server.content = says(
        text=SAID,
        SubQuestions={"question": ALONE, "questions": []},
        MapAnswer={"points": [{"description": SAID, "score": 80}]},
        DriftAnswer=step,
        QuestionKind={"kind": "fact", "reason": "It asks for one."},
        RelevantUnits={"units": [{"id": 1, "sentences": [1]}]},
        PlannedSteps={"steps": [{"variable": "answer", "question": ALONE}]},
        StepValues={"values": [{"value": "William Hudson", "statement": SAID}]},
    )
    return server


def messages(server: OpenAIServer) -> list[str]:
    return [user_message(request.body) for request in server.chats]


@pytest.mark.parametrize("method", [*METHODS, "ask"])
def test_one_request_reads_the_conversation_and_all_others_the_rewritten_question(
    modeled: GraphRAG, server: OpenAIServer, method: str
) -> None:
    answer = modeled.search(method, FOLLOW_UP, history=HISTORY)
    first, *others = messages(server)
    assert "assistant: The Niagara did" in first
    assert first.endswith(f"Question: {FOLLOW_UP}")
    assert others
    assert not [text for text in others if FOLLOW_UP in text or "The Niagara did" in text]
    assert any(ALONE in text for text in others)
    assert answer.question == FOLLOW_UP
    assert answer.usage["rewrite"].calls >= 1


def test_where_the_request_fails_rules_add_the_subject_of_the_conversation(
    modeled: GraphRAG, server: OpenAIServer
) -> None:
    server.content = says(text=SAID, SubQuestions="no JSON at all")
    answer = modeled.local(FOLLOW_UP, history=HISTORY)
    assert messages(server)[-1].endswith(f"Agamemnon — {FOLLOW_UP}")
    assert [failure.part for failure in answer.errors] == ["rewrite"]
