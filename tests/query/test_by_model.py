"""Searches by a model over HTTP: requests, failed calls, recorded usage."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.contracts.answering import NO_ANSWER
from graphrag_assets.llm.model_errors import RetriesExhausted
from graphrag_assets.query import GraphRAG
from tests.openai_server import OpenAIServer
from tests.query.conftest import write_index
from tests.query.modeled import chat_answerer, question_of, ratings_by, says, user_message
from tests.word_vectors import MODEL, embed

QUESTION = "Who commanded the Niagara?"
SMALL = {"max_context_tokens": 170}  # a report or two in a batch


RAISED = [
    "What became of the Agamemnon in the end?",
    "Where did Captain Hudson grow up?",
    "Which buyers did Daniel Gooch head?",
    "How large is Valentia?",
    "Why did penguins gather near the ice?",
    "When was the oil of the lamps sold?",
    "What is a frigate?",
]


def cited(body: dict[str, Any]) -> list[int]:
    """The numbers of the reports in a request."""
    rows = user_message(body).split("\n")
    return [int(row.split("|")[0]) for row in rows if row.split("|")[0].isdigit()]


def points_of(body: dict[str, Any]) -> dict[str, Any]:
    """A point for each report that a map call reads, scored by its number."""
    return {"points": [{"description": f"Point {n}. [Data: Reports ({n})]", "score": 50 + n} for n in cited(body)]}


def follow_ups_of(body: dict[str, Any]) -> dict[str, Any]:
    """Points of the request's first report or source, and two questions more about what was asked."""
    question = question_of(body)
    table = "Sources" if "-----Sources-----" in user_message(body) else "Reports"
    asked = RAISED[: RAISED.index(question) + 3] if question in RAISED else RAISED[:2]
    raised = [{"question": one, "score": 90 - RAISED.index(one)} for one in asked[-2:]]
    number = 0 if table == "Sources" else cited(body)[0]
    return {
        "points": [{"description": f"On {question} [Data: {table} ({number})]", "score": 40}],
        "follow_ups": raised,
    }


def notes_of(body: dict[str, Any]) -> str:
    """An answer that repeats the notes."""
    notes = [line for line in user_message(body).split("\n") if "[Data:" in line]
    return "\n".join(notes) or "He did."


@pytest.fixture
def server(server: OpenAIServer) -> OpenAIServer:
    server.content = says(
        text=notes_of,
        MapAnswer=points_of,
        DriftAnswer=follow_ups_of,
        CommunityRatings=ratings_by(lambda report: 3),
        QuestionKind={"kind": "theme", "reason": "It is about all."},
        Questions={"questions": ["What became of her?"]},
    )
    return server


@pytest.fixture
def hasty(server: OpenAIServer, index_file: Path, tmp_path: Path) -> GraphRAG:
    """Gives up after the first attempt."""
    return GraphRAG(index_file, answerer=chat_answerer(server, tmp_path, max_retries=0))


@pytest.mark.extended
def test_failed_part_of_a_global_search_is_reported_and_keeps_the_others(hasty: GraphRAG, server) -> None:
    whole = hasty.global_(QUESTION, **SMALL)
    parts = whole.usage["map"].calls
    assert parts >= 3
    assert whole.errors == []
    server.fail_next("500")
    answer = hasty.global_(f"{QUESTION} Again?", **SMALL)
    (failure,) = answer.errors
    assert failure.part == "map"
    assert f"of {parts} of the reports" in failure.what
    assert "500" in failure.error
    assert answer.usage["map"].calls == parts - 1
    assert 0 < len(answer.citations) < len(whole.citations)
    assert f"Missing: {failure.what}" in str(answer)


def test_when_all_parts_fail_the_error_is_raised(hasty: GraphRAG, server) -> None:
    server.fail_next(*["500"] * 20)
    with pytest.raises(RetriesExhausted, match="500"):
        hasty.global_(QUESTION, **SMALL)
    server.next_faults.clear()
    for method in ("local", "drift", "basic"):
        server.fail_next(*["500"] * 20)
        with pytest.raises(RetriesExhausted, match="500"):
            hasty.search(method, QUESTION)
        server.next_faults.clear()


def test_usage_is_booked_by_category_with_its_cost(modeled: GraphRAG, server) -> None:
    answers = {method: modeled.search(method, QUESTION) for method in ("local", "global", "drift", "basic")}
    categories = {
        "local": {"build_context", "response"},
        "basic": {"build_context", "response"},
        "global": {"build_context", "map", "reduce"},
        "drift": {"build_context", "hypothesis", "primer", "action", "reduce"},
    }
    for method, answer in answers.items():
        assert set(answer.usage) == categories[method]
        for category, usage in answer.usage.items():
            assert usage.seconds > 0
            if category != "build_context":
                assert usage.calls > 0
                assert usage.cost_usd == usage.prompt_tokens + usage.completion_tokens > 0
    assert sum(answer.total_usage.calls for answer in answers.values()) == len(server.chats)


def test_question_without_relevant_points_gets_the_fixed_answer_without_a_call(modeled: GraphRAG, server) -> None:
    server.content = says(MapAnswer={"points": [{"description": "Of no use.", "score": 0}]})
    assert modeled.global_(QUESTION).answer == NO_ANSWER
    assert {request.task for request in server.chats} == {"MapAnswer"}
    assert list(modeled.stream("global", QUESTION)) == [NO_ANSWER]


def test_the_form_of_the_answer_is_free_text_and_reaches_the_model(modeled: GraphRAG, server) -> None:
    for method in ("local", "global", "drift", "basic"):
        modeled.search(method, QUESTION, response_type="a limerick", language="French")
        last = server.chats[-1].body["messages"]
        assert "Form of the answer: a limerick" in last[1]["content"]
        assert "Answer in French." in last[0]["content"]
    modeled.global_(QUESTION, general_knowledge=True, max_reduce_words=77)
    assert "[LLM: verify]" in server.chats[-1].body["messages"][0]["content"]
    assert "At most 77 words" in server.chats[-1].body["messages"][0]["content"]


def test_point_cannot_cite_rows_outside_its_part(modeled: GraphRAG, server) -> None:
    server.content = says(
        MapAnswer=lambda body: {
            "points": [{"description": f"Point {n}. [Data: Reports ({n}, 77)]", "score": 60} for n in cited(body)]
        },
        text=notes_of,
    )
    answer = modeled.global_(QUESTION, **SMALL)
    assert "77" not in answer.answer
    assert answer.unresolved == ["Reports (77)"]
    assert all("77" not in user_message(request.body) for request in server.chats if request.task == "text")


def test_answer_cannot_cite_rows_that_no_point_cites(modeled: GraphRAG, server) -> None:
    server.content = says(
        MapAnswer={"points": [{"description": "It was so. [Data: Reports (3)]", "score": 60}]},
        text="It was so. [Data: Reports (3, 4)]",  # report 4 was read, but nothing of it noted
    )
    answer = modeled.global_(QUESTION)
    assert answer.answer == "It was so. [Data: Reports (3)] [unresolved: Reports (4)]"
    assert answer.unresolved == ["Reports (4)"]
    cited_rows = answer.context["reports"].filter("cited")["human_readable_id"].to_list()
    assert cited_rows == [3]
    assert answer.context["reports"]["in_context"].all()


def test_drift_searches_its_reports_by_the_hypothetical_answer(server: OpenAIServer, tmp_path: Path) -> None:
    index = write_index(tmp_path / "graphrag-1.duckdb", MODEL)
    modeled = GraphRAG(index, answerer=chat_answerer(server, tmp_path), embedder=embed)
    server.content = says(
        text=lambda body: "Penguins were seen near the ice." if "<example" in user_message(body) else notes_of(body),
        DriftAnswer=follow_ups_of,
    )
    options = {"primer_reports": 1, "depth": 0}
    assert modeled.drift("Which animals?", **options).context["reports"]["human_readable_id"].to_list() == [2]
    server.content = says(
        text=lambda body: "The Great Eastern." if "<example" in user_message(body) else notes_of(body),
        DriftAnswer=follow_ups_of,
    )
    (number,) = modeled.drift("Which animal?", **options).context["reports"]["human_readable_id"]
    assert number != 2


def test_drift_keeps_to_its_calls(modeled: GraphRAG, server) -> None:
    modeled.drift(QUESTION)
    assert len(server.chats) <= 16
    for most in (2, 3, 5, 9):
        before = len(server.chats)
        modeled.drift(f"{QUESTION} {most}?", max_calls=most, depth=4, breadth=5)
        assert len(server.chats) - before <= most


def test_failed_step_of_drift_is_reported_and_keeps_the_others(hasty: GraphRAG, server) -> None:
    hasty.drift(QUESTION, depth=1, breadth=1, primer_folds=1, hypothetical_answer=False)
    server.fail_next(None, "500")  # primer, step, answer
    answer = hasty.drift(f"{QUESTION}?", depth=1, breadth=1, primer_folds=1, hypothetical_answer=False)
    assert [failure.part for failure in answer.errors] == ["action"]
    assert [action.error is None for action in answer.actions] == [True, False]
    assert answer.citations


def test_dynamic_selection_rates_reports_with_the_cheaper_model(server, index_file, tmp_path) -> None:
    rating = ratings_by(lambda report: 4 if "Agamemnon" in report else 0)
    server.content = says(CommunityRatings=rating, MapAnswer=points_of, text=notes_of)
    (tmp_path / "cheap").mkdir()
    cheaper = chat_answerer(server, tmp_path / "cheap", "openai/cheap")
    rag = GraphRAG(index_file, answerer=chat_answerer(server, tmp_path), rating_model=cheaper)
    answer = rag.global_(QUESTION, dynamic=True)
    # Community 0 holds the Agamemnon; of its children 3 does, 4 does not. 1 and 2 are single entities: no model is asked.
    assert answer.context["reports"]["human_readable_id"].to_list() == [3]
    models = {(request.task, request.body["model"]) for request in server.chats}
    assert models == {("CommunityRatings", "cheap"), ("MapAnswer", "test-model"), ("text", "test-model")}
    assert answer.usage["rating"].calls == 2  # a request a level
    coarse = rag.global_(QUESTION, dynamic=True, community_level=0)
    assert coarse.context["reports"]["human_readable_id"].to_list() == [0]
    assert coarse.usage["rating"].calls == 0


def test_a_report_without_a_rating_is_read(hasty: GraphRAG, server) -> None:
    server.content = says(CommunityRatings=ratings_by(lambda report: 0), MapAnswer=points_of, text=notes_of)
    server.fail_next("500")
    answer = hasty.global_(QUESTION, dynamic=True, community_level=0)
    assert [failure.part for failure in answer.errors] == ["rating"]
    assert answer.context["reports"].height == 1
    one_of_two = {"ratings": [{"id": 1, "rating": 3}]}  # of communities 3 and 4, community 4 has none
    server.content = says(CommunityRatings=one_of_two, MapAnswer=points_of, text=notes_of)
    answer = hasty.global_(QUESTION, dynamic=True)
    assert [failure.what for failure in answer.errors] == ["the rating of community 4"]
    assert sorted(answer.context["reports"]["human_readable_id"]) == [3, 4]
    server.content = says(CommunityRatings=ratings_by(lambda report: 0), MapAnswer=points_of, text=notes_of)
    answer = hasty.global_(QUESTION, dynamic=True)  # only the missing rating is requested
    assert (answer.usage["rating"].calls, answer.errors) == (1, [])
    assert answer.context["reports"]["human_readable_id"].to_list() == [3]


def test_ask_follows_the_model_and_gives_its_reason(modeled: GraphRAG) -> None:
    answer = modeled.ask(QUESTION)
    assert answer.method == "global"
    assert answer.choice is not None
    assert (answer.choice.kind, answer.choice.reason) == ("theme", "It is about all.")
    assert answer.choice.chosen_by == "openai/test-model"
    assert answer.usage["choice"].calls == 1


@pytest.mark.parametrize("said", [{"kind": "poem"}, "nonsense"])
def test_ask_falls_back_to_the_rules(modeled: GraphRAG, server, said: Any) -> None:
    server.content = says(QuestionKind=said, text="He did.")
    answer = modeled.ask(QUESTION)
    assert answer.method == "local"
    assert answer.choice is not None
    assert answer.choice.chosen_by == "rules"
    assert "the model" in answer.choice.reason
