"""Answers by a chat model: the prompt used, the parsed answer, the cost."""

import asyncio
import json

import pytest

from graphrag_assets.contracts.answering import (
    NO_ANSWER,
    AnswerOptions,
    Evidence,
    Passage,
    Point,
    best_points,
)
from graphrag_assets.llm.prompts import Prompts, fence
from graphrag_assets.llm.tasks.answer_questions import ChatAnswerer
from graphrag_assets.text.words import count_tokens
from tests.llm.tasks.scripted_chat import Said, ScriptedChat

QUESTION = "Who laid the cable?"
SOURCES = Evidence("-----Sources-----\nid|text\n3|The Agamemnon.", (Passage("Sources", 3, "", "The Agamemnon."),))
REPORTS = Evidence("-----Reports-----\nid|content\n1|Cables.", (Passage("Reports", 1, "Cables", "Cables."),))
MIXED = Evidence(REPORTS.text + SOURCES.text, REPORTS.passages + SOURCES.passages)
NOTHING = Evidence("", ())


run = asyncio.run


def answerer(*script: Said) -> tuple[ChatAnswerer, ScriptedChat]:
    chat = ScriptedChat(script)
    return ChatAnswerer(chat, Prompts(), "openai/test"), chat


@pytest.mark.parametrize(("evidence", "task"), [(MIXED, "local_search"), (SOURCES, "basic_search")])
def test_the_prompt_follows_the_kind_of_evidence(evidence: Evidence, task: str):
    rag, chat = answerer(" The Agamemnon [Data: Sources (3)]. ")
    reply = run(rag.arespond(QUESTION, evidence, AnswerOptions(response_type="one line", language="French")))
    assert reply.text == "The Agamemnon [Data: Sources (3)]."
    assert (reply.usage.calls, reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost_usd) == (
        1,
        100,
        5,
        1,
    )
    (request,) = chat.requests
    assert request.task == task
    system, user = (message["content"] for message in request.messages)
    assert user == f"{fence(evidence.text, 'data')}\n\nForm of the answer: one line\nQuestion: {QUESTION}"
    assert f"answer only this: {NO_ANSWER}" in system
    assert "Answer in French." in system


def test_points_are_scored_sorted_and_without_irrelevant_ones():
    said = [
        {"description": "second [Data: Reports (1)]", "score": "40"},
        {"description": "unscored"},
        {"description": "first", "score": 400},
        {"description": "irrelevant", "score": 0},
        {"description": "", "score": 90},
        {"score": 90},
    ]
    rag, chat = answerer(json.dumps({"points": said}))
    mapped = run(rag.amap(QUESTION, REPORTS))
    assert mapped.points == (Point("first", 100), Point("unscored", 50), Point("second [Data: Reports (1)]", 40))
    assert mapped.follow_ups == ()
    assert mapped.usage.calls == 1
    assert chat.tasks == ["global_map"]


def test_the_points_of_an_answer_are_the_best_that_fit_the_limit():
    points = [Point("short one", 10), Point("word " * 200, 90), Point("best", 95.5), Point("zero", 0), Point(" ", 50)]
    kept = best_points(points, 60)
    assert kept == [Point("best", 95.5), Point("short one", 10)]
    rag, chat = answerer("An answer.")
    assert run(rag.areduce(QUESTION, kept)).text == "An answer."
    notes = "-----Note (importance 95.5)-----\nbest\n\n-----Note (importance 10)-----\nshort one"
    assert chat.tasks == ["global_reduce"]
    assert fence(notes, "notes") in chat.requests[0].messages[1]["content"]
    assert count_tokens([notes])[0] <= 60
