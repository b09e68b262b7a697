"""Planned search: steps with variables, by a model over HTTP."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from graphrag_assets.contracts.answering import NO_ANSWER
from graphrag_assets.contracts.plans import Plan, Step
from graphrag_assets.extras.planned import NO_PLANNER
from graphrag_assets.llm.model_errors import ModelError
from graphrag_assets.query import GraphRAG
from tests.openai_server import OpenAIServer
from tests.query.modeled import question_of, says, user_message

QUESTION = "Who commanded the ship that met the Agamemnon?"
PLAN = {
    "steps": [
        {"variable": "ship", "question": "Which ship met the Agamemnon?"},
        {"variable": "answer", "question": "Who commanded the {ship}?"},
    ]
}
MET = "The Niagara met the Agamemnon. [Data: Sources (0)]"
COMMANDED = "William Hudson commanded the Niagara. [Data: Sources (0); Entities (2)]"
VALUES = {
    "Which ship met the Agamemnon?": [("Niagara", MET)],
    "Who commanded the Niagara?": [("William Hudson", COMMANDED)],
}


def model(plan: Any, values: dict[str, list[tuple[str, str]]]) -> Any:
    """A model that answers with this plan, and each step with the values for its question."""

    def of_step(body: dict[str, Any]) -> dict[str, Any]:
        found = values.get(question_of(body), [])
        return {"values": [{"value": value, "statement": statement} for value, statement in found]}

    return says(PlannedSteps=plan, StepValues=of_step, text=lambda body: " ".join(notes_in(body)))


def notes_in(body: dict[str, Any]) -> list[str]:
    """The statements of the notes in a request."""
    return [line.partition(": ")[2] for line in user_message(body).split("\n") if "[Data:" in line]


@pytest.fixture
def rag(modeled: GraphRAG, server: OpenAIServer) -> GraphRAG:
    server.content = model(PLAN, VALUES)
    return modeled


def sent(server: OpenAIServer, task: str) -> list[str]:
    return [user_message(request.body) for request in server.chats if request.task == task]


def test_a_value_of_one_step_is_part_of_the_question_of_the_next(rag, server):
    answer = rag.planned(QUESTION)
    assert answer.steps["question"].to_list() == list(VALUES)
    assert answer.steps["values"].to_list() == [["Niagara"], ["William Hudson"]]
    assert answer.steps["found"].to_list() == [True, True]
    assert answer.answer == f"{MET} {COMMANDED}"
    assert {(row.table, row.number) for c in answer.citations for row in c.rows} == {("Sources", 0), ("Entities", 2)}
    calls = {category: usage.calls for category, usage in answer.usage.items() if usage.calls}
    assert calls == {"plan": 1, "step": 2, "response": 1}
    (plan,) = sent(server, "PlannedSteps")
    assert plan.endswith(f"Question: {QUESTION}")
    assert "Sources" not in plan  # no data of the index
    again = rag.planned(QUESTION)
    assert (again.answer, again.total_usage.calls) == (answer.answer, 0)


def test_a_step_that_finds_nothing_is_reported_and_those_that_need_it_are_skipped(rag, server):
    server.content = model(PLAN, {})
    pieces = list(stream := rag.stream("planned", QUESTION))
    answer = stream.result
    missing = (
        "Step 1 (Which ship met the Agamemnon?) found nothing: nothing in the index answers it.\n"
        "Step 2 (Who commanded the {ship}?) was skipped: it needs ship, for which nothing was found."
    )
    assert answer.answer == "".join(pieces) == f"{NO_ANSWER}\n\n{missing}"
    assert answer.steps["found"].to_list() == [False, None]
    assert answer.citations == []
    assert server.counts["task text"] == 0


def test_statements_without_a_valid_reference_are_not_used(rag, server):
    invented = [("Great Eastern", "The Great Eastern met her. [Data: Sources (77)]"), ("Arctic", "It was the Arctic.")]
    server.content = model(PLAN, VALUES | {"Which ship met the Agamemnon?": invented})
    answer = rag.planned(QUESTION)
    assert answer.steps["found"].to_list() == [False, None]
    assert answer.unresolved == ["Sources (77)"]


def test_a_failed_step_is_an_error_beside_the_others(rag, server):
    steps = [{"variable": "depth", "question": "How deep was the sea?"}, *PLAN["steps"]]
    server.content = model({"steps": steps}, VALUES)
    server.replace = lambda body: (
        (400, {}, b'{"error": {"message": "no"}}') if question_of(body) == "How deep was the sea?" else None
    )
    answer = rag.planned(QUESTION)
    assert [(failure.part, failure.what) for failure in answer.errors] == [("step", "the step 'How deep was the sea?'")]
    assert answer.steps["problem"][0] == "its calls failed"
    assert "William Hudson" in answer.answer
    server.content = model({"steps": steps[:1]}, VALUES)
    with pytest.raises(ModelError):
        rag.planned("How deep was the sea between Valentia and Newfoundland?")


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([("a", "Who met {b}?")], "which no step binds"),
        ([("a", "Who met {b}?"), ("b", "Who met {a}?")], "wait for each other"),
        ([(f"v{i}", "Who?") for i in range(7)], "at most 6"),
        ([("a", "Who?"), ("a", "Where?")], "bound once"),
        ([], "at least 1"),
    ],
)
def test_an_invalid_plan_is_asked_for_again_once(rag, server, steps, problem):
    of = [{"variable": variable, "question": question} for variable, question in steps]
    with pytest.raises(ValidationError, match=problem):
        Plan(question="?", steps=tuple(Step(**step) for step in of))
    plans = iter([{"steps": of}, PLAN])
    server.content = model(lambda body: next(plans), VALUES)
    assert rag.planned(QUESTION).steps["values"][1].to_list() == ["William Hudson"]
    second = [request.body["messages"] for request in server.chats if request.task == "PlannedSteps"][1]
    assert problem in second[-1]["content"]
    server.content = model({"steps": of}, VALUES)
    with pytest.raises(ModelError):
        rag.plan("Who commanded the ship that left Valentia?")


def test_text_outside_the_filter_is_never_sent(rag, server):
    answer = rag.planned(QUESTION, documents=["Document 0"], metadata={})
    bodies = json.dumps([request.body for request in server.requests])
    assert answer.steps["found"].to_list() == [True, True]
    assert "Great Eastern" not in bodies
    assert "Penguin" not in bodies


def test_without_a_chat_model_local_search_answers_and_the_answer_says_so(index_file):
    rag = GraphRAG(index_file)
    local = rag.local("Who commanded the Niagara?")
    answer = rag.planned("Who commanded the Niagara?")
    assert answer.answer == f"{local.answer}\n\n{NO_PLANNER}"
    assert "needs a chat model (GRAPHRAG_CHAT_MODEL or GRAPHRAG_QUERY_MODEL)" in answer.answer
    assert answer.citations == local.citations
    assert answer.steps.select("found", "problem").rows() == [(True, NO_PLANNER)]
    assert answer.total_usage.calls == 0
    pieces = "".join(rag.stream("planned", "Who commanded the Niagara?"))
    assert pieces == answer.answer
    plan = rag.plan("Who commanded {the} Niagara?")
    assert [step.question for step in plan.steps] == ["Who commanded the Niagara?"]
    assert plan.note == NO_PLANNER
    read = rag.context("planned", "Who commanded the Niagara?").frames["sources"]
    assert read["human_readable_id"].equals(answer.context["sources"]["human_readable_id"])
