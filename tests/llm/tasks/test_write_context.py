"""Contexts by a chat model: the order of the prompt and the parsed answer."""

import asyncio
import json

import pytest

from graphrag_assets.contracts.records import PlacedUnit
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts, fence
from graphrag_assets.llm.task import TaskModel
from graphrag_assets.llm.tasks.write_context import MAX_TOKENS, write_context
from graphrag_assets.text.words import count_tokens
from tests.llm.tasks.scripted_chat import ScriptedChat

DOCUMENT = "The Great Eastern left Valentia in 1866. She laid the cable. She was sold in 1888."
FIRST = PlacedUnit("u1", "The cable › 1866", DOCUMENT, "She laid the cable.")
SECOND = PlacedUnit("u2", "The cable › 1888", DOCUMENT, "She was sold in 1888.")


def written(said: str) -> str:
    return asyncio.run(write_context(TaskModel(ScriptedChat([said]), Prompts()), FIRST, None))


def request_for(unit: PlacedUnit) -> ChatRequest:
    chat = ScriptedChat(['{"context": "C."}'])
    asyncio.run(write_context(TaskModel(chat, Prompts()), unit, None))
    return chat.requests[0]


def test_the_document_comes_before_the_passage_and_is_the_same_for_all_passages():
    requests = [request_for(unit) for unit in (FIRST, SECOND)]
    shared = fence(DOCUMENT, "document")
    for unit, request in zip((FIRST, SECOND), requests, strict=True):
        system, user = (message["content"] for message in request.messages)
        passage = fence(f"{unit.headings}\n\n{unit.text}", "passage")
        assert user == f"{shared}\n\n{passage}"
        assert DOCUMENT not in system
    assert requests[0].messages[0] == requests[1].messages[0]


def test_passage_without_title_and_headings_is_sent_alone():
    request = request_for(PlacedUnit("u", "", "It rained.", "It rained."))
    assert request.messages[1]["content"].endswith(fence("It rained.", "passage"))


def test_the_answer_becomes_one_line():
    assert written('{"context": " The ship is the Great Eastern.\\n\\n It is 1866. "}') == (
        "The ship is the Great Eastern. It is 1866."
    )


def test_an_answer_that_is_too_long_keeps_its_first_sentences():
    said = "The ship is the Great Eastern. " * 60
    context = written(json.dumps({"context": said}))
    assert context.endswith("Great Eastern.")
    assert MAX_TOKENS - 10 < count_tokens([context])[0] <= MAX_TOKENS
    endless = written(json.dumps({"context": "word " * 500}))
    assert MAX_TOKENS - 10 < count_tokens([endless])[0] <= MAX_TOKENS


def test_an_empty_answer_is_none():
    with pytest.raises(Exception, match="the context is empty"):
        written('{"context": "  "}')
