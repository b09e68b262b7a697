"""The preview of extraction: what it counts is what is sent."""

import asyncio
import json

from graphrag_assets.models.llm.options import ChatRequest
from graphrag_assets.models.prompts import Prompts
from graphrag_assets.models.tasks.chat import prompt_tokens
from graphrag_assets.models.tasks.claims import ClaimOptions
from graphrag_assets.models.tasks.extraction import ExtractGraph, ExtractionOptions, extract_text_unit
from graphrag_assets.models.tasks.formats import RecordsForm
from graphrag_assets.models.tasks.plan import AnswerLength, Planned, extraction_plan
from graphrag_assets.text import count_tokens
from tests.models.tasks.scripted_chat import ScriptedChat

TEXT = "Scrooge was Marley's only partner. Bob Cratchit was his clerk. " * 5
PROMPTS = Prompts()
GRAPH = json.dumps(
    {"entities": [{"name": "Scrooge", "type": "PERSON", "description": "A miser."}], "relationships": []}
)
CLAIMS = json.dumps({"claims": [{"subject": "Scrooge", "source_text": "Scrooge was Marley's only partner."}]})


def sent(options: ExtractionOptions, claims: ClaimOptions | None) -> ScriptedChat:
    chat = ScriptedChat(lambda request: GRAPH if request.response_model is ExtractGraph else CLAIMS)
    asyncio.run(extract_text_unit(chat, PROMPTS, TEXT, options, claims))
    return chat


def test_the_calls_and_the_tokens_of_first_requests_are_exact():
    planned = extraction_plan(PROMPTS, TEXT, ExtractionOptions(), ClaimOptions())
    chat = sent(ExtractionOptions(), ClaimOptions())
    assert [plan.task for plan in planned] == chat.tasks
    for plan, request in zip(planned, chat.requests, strict=True):
        if plan.exact:
            assert plan.prompt_tokens == prompt_tokens(request)
    assert [plan.exact for plan in planned] == [True, False, True, False]


def test_a_gleaning_differs_from_its_plan_by_the_first_answers_length_alone():
    _, gleaning = extraction_plan(PROMPTS, TEXT, ExtractionOptions(), length=AnswerLength(0.5, 10, 0.2))
    _, request = sent(ExtractionOptions(), None).requests
    text_tokens = count_tokens([TEXT])[0]
    said = count_tokens([request.messages[2]["content"]])[0]
    first = round(0.5 * text_tokens + 10)
    assert gleaning.prompt_tokens == prompt_tokens(request) - said + first
    assert gleaning.completion_tokens == round(0.2 * first)


def test_what_is_paid_for_is_not_planned_and_what_follows_it_is_exact():
    chat = sent(ExtractionOptions(), None)
    answered: dict[tuple[object, ...], RecordsForm] = {}

    def known(request: ChatRequest) -> RecordsForm | None:
        return answered.get((request.task, *(message["content"] for message in request.messages)))

    def pay(request: ChatRequest) -> None:
        key = (request.task, *(message["content"] for message in request.messages))
        answered[key] = ExtractGraph.model_validate_json(GRAPH)

    pay(chat.requests[0])
    (planned,) = extraction_plan(PROMPTS, TEXT, ExtractionOptions(), known=known)
    assert planned == Planned(
        "extract_graph_continue",
        prompt_tokens(chat.requests[1]),
        AnswerLength().following(count_tokens([TEXT])[0]),
        exact=True,
    )
    pay(chat.requests[1])
    assert extraction_plan(PROMPTS, TEXT, ExtractionOptions(), known=known) == ()


def test_a_conversation_that_ended_early_is_not_planned_further():
    nothing = ExtractGraph.model_validate({"entities": [], "relationships": []})

    def known(request: ChatRequest) -> RecordsForm | None:
        return nothing

    assert extraction_plan(PROMPTS, TEXT, ExtractionOptions(max_gleanings=3), known=known) == ()


def test_without_gleaning_there_is_one_call():
    (planned,) = extraction_plan(PROMPTS, TEXT, ExtractionOptions(max_gleanings=0))
    assert planned.exact
