"""Planned search: steps with variables, by a model over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pydantic import ValidationError

from graphrag_assets.contracts.answering import NO_ANSWER
from graphrag_assets.contracts.plans import Order, Plan, Step
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.planned.search import NO_PLANNER
from graphrag_assets.extras.planned.step_rows import claims_between, compared, stated_relationships
from graphrag_assets.llm.model_errors import ModelError
from graphrag_assets.query import Callbacks, GraphRAG
from graphrag_assets.query.retrieval import Question
from tests.cli import run_command
from tests.openai_server import OpenAIServer, running
from tests.query.conftest import write_index
from tests.query.modeled import chat_answerer, question_of, says, user_message

QUESTION = "Who commanded the ship that met the Agamemnon?"
PLAN = {
    "steps": [
        {"variable": "ship", "kind": "find", "question": "Which ship met the Agamemnon?"},
        {"variable": "answer", "kind": "find", "question": "Who commanded the {ship}?"},
    ]
}
MET = "The Niagara met the Agamemnon. [Data: Sources (0)]"
COMMANDED = "William Hudson commanded the Niagara. [Data: Sources (0); Entities (2)]"
VALUES = {
    "Which ship met the Agamemnon?": [("Niagara", MET)],
    "Who commanded the Niagara?": [("William Hudson", COMMANDED)],
}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with running() as server:
        yield server


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
def rag(index_file: Path, server: OpenAIServer, tmp_path: Path) -> GraphRAG:
    server.content = model(PLAN, VALUES)
    return GraphRAG(index_file, answerer=chat_answerer(server, tmp_path))


def sent(server: OpenAIServer, task: str) -> list[str]:
    return [user_message(request.body) for request in server.chats if request.task == task]


def test_a_value_of_one_step_is_part_of_the_question_of_the_next(rag, server):
    contexts = []
    answer = rag.planned(QUESTION, callbacks=Callbacks(on_context=contexts.append))
    assert answer.steps["question"].to_list() == list(VALUES)
    assert answer.steps["values"].to_list() == [["Niagara"], ["William Hudson"]]
    assert answer.steps["found"].to_list() == [True, True]
    assert [context.question for context in contexts] == list(VALUES)
    assert answer.answer == f"{MET} {COMMANDED}"
    assert {(row.table, row.number) for c in answer.citations for row in c.rows} == {("Sources", 0), ("Entities", 2)}
    calls = {category: usage.calls for category, usage in answer.usage.items() if usage.calls}
    assert calls == {"plan": 1, "step": 2, "response": 1}
    (plan,) = sent(server, "PlannedSteps")
    assert plan.endswith(f"Question: {QUESTION}")
    assert "Sources" not in plan  # no data of the index


def test_the_same_question_again_costs_nothing(rag, server):
    first = rag.planned(QUESTION)
    requests = len(server.requests)
    again = rag.planned(QUESTION)
    assert len(server.requests) == requests
    assert again.answer == first.answer
    assert again.total_usage.calls == 0


def test_the_plan_alone_asks_for_nothing_else(rag, server):
    plan = rag.plan(QUESTION)
    assert str(plan) == "1. ship = find: Which ship met the Agamemnon?\n2. answer = find: Who commanded the {ship}?"
    assert (plan.planned_by, len(server.requests)) == ("openai/test-model", 1)
    assert "Which ship met the Agamemnon" in plan._repr_markdown_()


def test_a_step_that_finds_nothing_is_reported_and_those_that_need_it_are_skipped(rag, server):
    server.content = model(PLAN, {})
    pieces = list(stream := rag.planned.stream(QUESTION))
    answer = stream.result
    assert (
        answer.answer
        == "".join(pieces)
        == (
            f"{NO_ANSWER}\n\n"
            "Step 1 (Which ship met the Agamemnon?) found nothing: nothing in the index answers it.\n"
            "Step 2 (Who commanded the {ship}?) was skipped: it needs ship, for which nothing was found."
        )
    )
    assert answer.steps["found"].to_list() == [False, None]
    assert answer.citations == []
    assert server.counts["task text"] == 0


def test_a_missing_step_is_named_after_the_answer_from_the_others(rag, server):
    plan = [*PLAN["steps"], {"variable": "depth", "kind": "find", "question": "How deep was the sea?"}]
    server.content = model({"steps": [plan[2], *plan[:2]]}, VALUES)
    pieces = list(stream := rag.planned.stream(QUESTION))
    ending = "Step 1 (How deep was the sea?) found nothing: nothing in the index answers it."
    assert stream.result.answer == "".join(pieces) == f"{MET} {COMMANDED}\n\n{ending}"


def test_statements_without_a_valid_reference_are_not_used(rag, server):
    invented = [("Great Eastern", "The Great Eastern met her. [Data: Sources (77)]"), ("Arctic", "It was the Arctic.")]
    server.content = model(PLAN, VALUES | {"Which ship met the Agamemnon?": invented})
    answer = rag.planned(QUESTION)
    assert answer.steps["found"].to_list() == [False, None]
    assert answer.unresolved == ["Sources (77)"]


def test_a_failed_step_is_an_error_beside_the_others(rag, server):
    steps = [{"variable": "depth", "kind": "find", "question": "How deep was the sea?"}, *PLAN["steps"]]
    server.content = model({"steps": steps}, VALUES)
    server.replace = lambda body: (
        (400, {}, b'{"error": {"message": "no"}}') if question_of(body) == "How deep was the sea?" else None
    )
    answer = rag.planned(QUESTION)
    assert [(failure.part, failure.what) for failure in answer.errors] == [("step", "the step 'How deep was the sea?'")]
    assert answer.steps["problem"][0] == "its calls failed"
    assert "William Hudson" in answer.answer


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([("a", "find", "Who met {b}?")], "which no step binds"),
        ([("a", "find", "Who met {b}?"), ("b", "find", "Who met {a}?"), ("c", "find", "Who?")], "wait for each other"),
        ([(f"v{i}", "find", "Who?") for i in range(7)], "at most 6"),
        ([("a", "find", "Who?"), ("a", "find", "Where?")], "bound once"),
        ([("a", "find", "Who met {b}?"), ("b", "find", "Who?")], "no other step may refer to it"),
        ([("a", "find", "When?"), ("b", "compare", "Is {a} earlier?")], "needs an order"),
        ([], "at least 1"),
    ],
)
def test_an_invalid_plan_is_asked_for_again_once(rag, server, steps, problem):
    of = [{"variable": variable, "kind": kind, "question": question} for variable, kind, question in steps]
    with pytest.raises(ValidationError, match=problem):
        Plan(question="?", steps=tuple(Step(**step) for step in of))
    plans = iter([{"steps": of}, PLAN])
    server.content = model(lambda body: next(plans), VALUES)
    assert rag.planned(QUESTION).steps["values"][1].to_list() == ["William Hudson"]
    first, second = (request.body["messages"] for request in server.chats if request.task == "PlannedSteps")
    assert problem in second[-1]["content"]
    server.content = model({"steps": of}, VALUES)
    with pytest.raises(ModelError):
        rag.plan("Who commanded the ship that left Valentia?")
    assert len(first) < len(second)


def test_conversation_and_language_reach_a_planned_search(rag, server):
    rag.planned(QUESTION, history=[("user", "Which ships had the cable?")], language="French")
    (plan,), (answer,) = sent(server, "PlannedSteps"), [r.body["messages"] for r in server.chats if r.task == "text"]
    assert "Which ships had the cable?" in plan
    assert "Which ships had the cable?" in answer[1]["content"]
    assert "Answer in French." in answer[0]["content"]


def test_text_outside_the_filter_is_never_sent(rag, server):
    answer = rag.planned(QUESTION, documents=["Document 0"], metadata={})
    bodies = json.dumps([request.body for request in server.requests])
    assert answer.steps["found"].to_list() == [True, True]
    assert "Great Eastern" not in bodies
    assert "Penguin" not in bodies


def test_independent_steps_run_at_the_same_time_and_dates_are_compared_without_a_request(rag, server):
    server.latency = 0.2
    steps = [
        {"variable": "a", "kind": "find", "question": "When did the Agamemnon reach Valentia?"},
        {"variable": "e", "kind": "find", "question": "When did the Great Eastern leave Valentia?"},
        {
            "variable": "first",
            "kind": "compare",
            "question": "Which was earlier, {a} or {e}?",
            "things": ["the Agamemnon", "the Great Eastern"],
            "order": "earliest",
        },
    ]
    values = {
        steps[0]["question"]: [("5 August 1858", "It reached Valentia on 5 August 1858. [Data: Sources (1)]")],
        steps[1]["question"]: [("July 1866", "It left in July 1866. [Data: Sources (3)]")],
    }
    server.content = model({"steps": steps}, values)
    answer = rag.planned("Which was at Valentia first, the Agamemnon or the Great Eastern?")
    assert answer.steps["values"][2].to_list() == ["the Agamemnon"]
    assert answer.steps["method"].to_list() == ["local", "local", "computed"]
    assert answer.steps["citations"][2] == 2
    assert server.most_in_flight == 2
    assert server.counts["task StepValues"] == 2


def test_a_step_follows_the_best_values_of_a_variable(rag, server):
    both = [("Niagara", MET), ("Great Eastern", "The Great Eastern met it. [Data: Sources (2)]")]
    server.content = model(PLAN, VALUES | {"Which ship met the Agamemnon?": both})
    answer = rag.planned(QUESTION, max_values=2)
    assert {question_of(r.body) for r in server.chats if r.task == "StepValues"} == {
        *VALUES,
        "Who commanded the Great Eastern?",
    }
    assert answer.steps["question"][1] == "Who commanded the Niagara?"
    asked = server.counts["task StepValues"]
    rag.planned(QUESTION, max_values=1)
    assert server.counts["task StepValues"] == asked  # those of the best value are stored


def test_things_are_counted_not_by_the_model(rag, server):
    step = {"variable": "n", "kind": "count", "question": "How many ships were there?"}
    ships = [(name, f"The {name} was a ship. [Data: Sources (0)]") for name in ("Niagara", "Agamemnon", "niagara")]
    server.content = model({"steps": [step]}, {step["question"]: ships})
    assert rag.planned("How many ships were there?").steps["values"].to_list() == [["2"]]


@pytest.mark.parametrize(
    ("values", "order", "place"),
    [
        (["1863", "on 3 May 1889"], Order.EARLIEST, 0),
        (["1858", "November 1866"], Order.LATEST, 1),
        (["July 1866", "1866"], Order.EARLIEST, None),  # one may be in the other
        (["£350,000", "£0.6 million"], Order.MOST, 1),
        (["eight", "12 men"], Order.LEAST, 0),
        (["8", "eight"], Order.MOST, None),
        (["many", "8"], Order.MOST, None),
    ],
)
def test_values_are_compared_by_arithmetic(values, order, place):
    assert compared(values, order) == place


def test_without_a_chat_model_local_search_answers_and_the_answer_says_so(index_file):
    rag = GraphRAG(index_file)
    local = rag.local("Who commanded the Niagara?")
    answer = rag.planned("Who commanded the Niagara?")
    assert answer.answer == f"{local.answer}\n\n{NO_PLANNER}"
    assert "needs a chat model (GRAPHRAG_CHAT_MODEL or GRAPHRAG_QUERY_MODEL)" in answer.answer
    assert answer.citations == local.citations
    assert answer.steps.select("found", "problem").rows() == [(True, NO_PLANNER)]
    assert answer.total_usage.calls == 0
    pieces = "".join(rag.planned.stream("Who commanded the Niagara?"))
    assert pieces == answer.answer
    plan = rag.plan("Who commanded {the} Niagara?")
    assert [step.question for step in plan.steps] == ["Who commanded the Niagara?"]
    assert plan.note == NO_PLANNER
    read = rag.context("planned", "Who commanded the Niagara?").frames["sources"]
    assert read["human_readable_id"].equals(answer.context["sources"]["human_readable_id"])


def between(question: str) -> dict[str, Any]:
    """A plan of one step that asks what happened between two dates."""
    return {"steps": [{"variable": "answer", "kind": "between", "question": question}]}


@pytest.mark.extended
def test_claims_between_two_dates_are_found_by_sql_within_the_filter(sample_index, server, tmp_path):
    rag = GraphRAG(sample_index.root / "index")
    question = "What did the Great Eastern do between 1865 and August 1866?"
    rows = claims_between(rag.index.reader(), Question(question))
    days = rag.sql(
        "SELECT human_readable_id FROM covariates WHERE starts_on BETWEEN '1865-01-01' AND '1866-08-31' "
        "AND ends_on <= '1866-08-31' AND 'Great Eastern' IN (subject_id, object_id) ORDER BY starts_on, ends_on, 1"
    )["human_readable_id"].to_list()
    assert rows["human_readable_id"].to_list() == days
    assert len(days) > 1
    said = f"It sailed. [Data: Claims ({days[0]})]"
    server.content = model(between(question), {question: [("1865", said)]})
    planner = GraphRAG(sample_index.root / "index", answerer=chat_answerer(server, tmp_path))
    answer = planner.planned(question)
    assert answer.steps["method"].to_list() == ["sql"]
    assert answer.context["claims"]["human_readable_id"].to_list() == days
    assert {row.number for citation in answer.citations for row in citation.rows} == {days[0]}
    other = planner.planned(question, documents=["honours-and-after"])
    assert {citation.document for citation in other.citations} <= {"honours-and-after"}


def test_a_publication_of_an_older_version_without_the_macro_is_an_error_with_a_remedy(tmp_path, server):
    path = write_index(tmp_path / "graphrag-1.duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP MACRO TABLE claims_between")
    question = "What did the Agamemnon do between 1857 and 1859?"
    server.content = model(between(question), {})
    rag = GraphRAG(path, answerer=chat_answerer(server, tmp_path))
    with pytest.raises(StoreError, match=r"older version: run `graphrag-assets index`"):
        rag.planned(question)
    assert GraphRAG(path).local("What did the Agamemnon do?").citations


@pytest.mark.extended
def test_relationships_of_the_type_that_is_asked_for_are_found_by_sql(sample_index):
    rag = GraphRAG(sample_index.root / "index")
    source, target = rag.sql(
        "SELECT source, target FROM relationships WHERE type = 'ACCOMPANIED' ORDER BY human_readable_id"
    ).row(0)
    found = stated_relationships(rag.index.reader(), Question(f"What was {source} accompanied by?"))
    assert found.select("source", "target").rows() == [(source, target)]
    assert stated_relationships(rag.index.reader(), Question(f"Where was {source} built?")).is_empty()


def test_the_command_shows_the_steps(index_file):
    options = ("--linking", "model", "--index", str(index_file), "--json")  # without a model, by names
    printed = run_command("query", "planned", "Who commanded the Niagara?", *options)
    assert json.loads(printed)["steps"][0]["found"]
    assert "Captain William Hudson" in json.loads(printed)["answer"]
