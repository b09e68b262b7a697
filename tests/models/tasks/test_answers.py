"""Answers by a chat model: which prompt is used when, what is made of the answer, what it cost."""

import asyncio
import json

import pytest

from graphrag_assets.models.answering import NO_ANSWER, Answerer, Evidence, FollowUp, Passage, Point
from graphrag_assets.models.llm.errors import RetriesExhausted
from graphrag_assets.models.prompts import Prompts, fence
from graphrag_assets.models.tasks.answers import AnswerOptions, ChatAnswerer, wait_for
from graphrag_assets.text import count_tokens
from tests.models.tasks.scripted_chat import Said, ScriptedChat

QUESTION = "Who laid the cable?"
SOURCES = Evidence("-----Sources-----\nid|text\n3|The Agamemnon.", (Passage("Sources", 3, "", "The Agamemnon."),))
REPORTS = Evidence("-----Reports-----\nid|content\n1|Cables.", (Passage("Reports", 1, "Cables", "Cables."),))
MIXED = Evidence(REPORTS.text + SOURCES.text, REPORTS.passages + SOURCES.passages)
NOTHING = Evidence("", ())


def answerer(*script: Said, **options: object) -> tuple[ChatAnswerer, ScriptedChat]:
    chat = ScriptedChat(script)
    return ChatAnswerer(chat, Prompts(), "openai/test", AnswerOptions(**options)), chat


def test_it_is_an_answerer():
    as_protocol: Answerer = answerer()[0]
    assert as_protocol.model == "openai/test"


@pytest.mark.parametrize(("evidence", "task"), [(MIXED, "local_search"), (SOURCES, "basic_search")])
def test_the_prompt_follows_the_kind_of_evidence(evidence: Evidence, task: str):
    rag, chat = answerer(" The Agamemnon [Data: Sources (3)]. ", response_type="one line", language="French")
    reply = rag.respond(QUESTION, evidence)
    assert reply.text == "The Agamemnon [Data: Sources (3)]."
    assert (reply.usage.calls, reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost) == (
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


def test_what_was_said_before_stands_outside_the_fence():
    rag, chat = answerer("A.")
    asyncio.run(rag.arespond(QUESTION, MIXED, history="- What ships were there?"))
    user = chat.requests[0].messages[1]["content"]
    assert "\n\nEarlier in this conversation:\n- What ships were there?\n\nForm of the answer:" in user


def test_without_evidence_nothing_is_asked():
    rag, chat = answerer()
    assert rag.respond(QUESTION, NOTHING).text == NO_ANSWER
    assert rag.map(QUESTION, NOTHING).points == ()
    assert rag.reduce(QUESTION, []).text == NO_ANSWER
    assert rag.reduce(QUESTION, [Point("irrelevant", 0)]).text == NO_ANSWER
    assert chat.requests == []


def test_an_empty_answer_is_no_answer():
    assert answerer("  ")[0].respond(QUESTION, MIXED).text == NO_ANSWER


def test_errors_are_raised_and_not_turned_into_empty_answers():
    for ask in (ChatAnswerer.respond, ChatAnswerer.map):
        with pytest.raises(RetriesExhausted):
            ask(answerer(RetriesExhausted("503"))[0], QUESTION, MIXED)


def test_points_are_scored_sorted_and_free_of_what_does_not_matter():
    said = [
        {"description": "second [Data: Reports (1)]", "score": "40"},
        {"description": "unscored"},
        {"description": "first", "score": 400},
        {"description": "irrelevant", "score": 0},
        {"description": "", "score": 90},
        {"score": 90},
    ]
    rag, chat = answerer(json.dumps({"points": said}))
    mapped = rag.map(QUESTION, REPORTS)
    assert mapped.points == (Point("first", 100), Point("unscored", 50), Point("second [Data: Reports (1)]", 40))
    assert mapped.follow_ups == ()
    assert mapped.usage.calls == 1
    assert chat.tasks == ["global_map"]


@pytest.mark.parametrize(("evidence", "task"), [(REPORTS, "drift_primer"), (MIXED, "drift_local")])
def test_follow_up_questions_come_best_first_each_once_and_not_too_many(evidence: Evidence, task: str):
    questions = ["B?", {"question": "A?", "score": 90}, {"question": "B?", "score": 95}, {"question": "C?", "score": 1}]
    rag, chat = answerer(json.dumps({"points": [{"description": "P", "score": 7}], "follow_ups": questions}))
    mapped = rag.map(QUESTION, evidence, 2)
    assert mapped.follow_ups == (FollowUp("A?", 90), FollowUp("B?", 50))
    assert mapped.points == (Point("P", 7),)
    assert chat.tasks == [task]
    assert "follow_ups: up to 2 " in chat.requests[0].messages[0]["content"]


def test_a_step_of_an_investigation_knows_what_the_whole_is_about():
    rag, chat = answerer('{"points": [], "follow_ups": []}')
    asyncio.run(rag.amap("Which ships?", MIXED, 3, main_question=QUESTION))
    user = chat.requests[0].messages[1]["content"]
    assert user.endswith(f"The whole investigation is about: {QUESTION}\n\nQuestion: Which ships?")


def test_reduce_puts_the_best_notes_first_and_keeps_to_the_limit():
    points = [Point("short one", 10), Point("word " * 200, 90), Point("best", 95.5), Point("zero", 0)]
    rag, chat = answerer("An answer.", max_reduce_tokens=60)
    assert rag.reduce(QUESTION, points).text == "An answer."
    notes = "-----Note (importance 95.5)-----\nbest\n\n-----Note (importance 10)-----\nshort one"
    assert chat.tasks == ["global_reduce"]
    assert fence(notes, "notes") in chat.requests[0].messages[1]["content"]
    assert count_tokens([notes])[0] <= 60


def test_general_knowledge_is_off_unless_asked_for():
    for allowed in (False, True):
        rag, chat = answerer("A.", general_knowledge=allowed)
        rag.reduce(QUESTION, [Point("P", 5)])
        assert ("[LLM: verify]" in chat.requests[0].messages[0]["content"]) is allowed


def test_drift_has_its_own_end():
    rag, chat = answerer("A.")
    asyncio.run(rag.areduce(QUESTION, [Point("P", 5)], drift=True))
    assert chat.tasks == ["drift_reduce"]


def test_the_other_query_tasks():
    rag, chat = answerer("A paragraph.", '{"questions": ["New?", "Old?", "New?", "", "More?"]}', '{"rating": "4"}')

    async def ask() -> None:
        assert (await rag.ahypothesis(QUESTION, "A report."))[0] == "A paragraph."
        assert (await rag.aquestions(["Old?"], MIXED, 5))[0] == ("New?", "More?")
        rating, usage = await rag.arate(QUESTION, "A report.")
        assert (rating, usage.calls) == (4, 1)

    asyncio.run(ask())
    assert chat.tasks == ["hypothetical_answer", "question_generation", "community_rating"]
    assert chat.requests[1].messages[1]["content"].endswith("Asked so far:\n- Old?")


def test_synchronous_calls_work_inside_a_running_loop():
    """As in a notebook."""

    async def cell() -> str:
        return answerer("A.")[0].respond(QUESTION, MIXED).text

    assert asyncio.run(cell()) == "A."


def test_all_synchronous_calls_share_one_event_loop():
    """Connections and limits of a client belong to the loop they were made in."""

    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert wait_for(loop()) is wait_for(loop())
