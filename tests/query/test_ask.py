"""`ask` classifies questions and answers them by the fitting method."""

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.query.choice import kind_by_rules

QUESTION = "Who commanded the Niagara?"


@pytest.mark.parametrize(
    ("question", "named", "kind"),
    [
        ("Who commanded the Niagara?", 1, "fact"),
        ("How are Cyrus Field and William Thomson connected?", 2, "fact"),
        ("What is the relationship between them?", 0, "open"),
        ("What are the main themes?", 0, "theme"),
        ("What is the book about?", 0, "theme"),
        ("Summarise what the Niagara did.", 1, "fact"),
        ("What did the oil of the lamps cost?", 0, "open"),
        ("What were the biggest problems?", 0, "theme"),
        ("Was sind die wichtigsten Themen?", 0, "theme"),
        ("Give me an overview of Cyrus Field", 1, "fact"),
        ("船は何をしましたか？", 0, "open"),
    ],
)
def test_rules_choose_the_method_by_wording_and_named_entities(question: str, named: int, kind: str) -> None:
    assert kind_by_rules(question, named)[0] == kind


def test_a_question_that_continues_the_conversation_is_about_what_that_names(rag: GraphRAG) -> None:
    history = [("user", "What was the Niagara?"), ("assistant", "A ship.")]
    assert rag.ask("Why?", history=history, max_context_tokens=2000).method == "local"
    assert rag.ask("What are the main themes?", history=history, max_context_tokens=2000).method == "global"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who commanded the Niagara?", "local search: it names 1 entity of the index (by rules)"),
        (
            "What are the main themes?",
            "global search: it asks about the whole ('main themes') and names no entity of the index (by rules)",
        ),
        (
            "What did the oil cost?",
            "local search: it names no entity of the index: passages and reports are read together (by rules)",
        ),
    ],
)
def test_answer_states_the_chosen_method_and_the_reason(rag: GraphRAG, question: str, said: str) -> None:
    answer = rag.ask(question, max_context_tokens=2000)
    assert str(answer.choice) == said
    assert answer.choice is not None
    assert answer.method == answer.choice.method
    assert answer.answer == rag.search(answer.method, question, max_context_tokens=2000, **answer.choice.options).answer


def test_options_of_ask_apply_to_the_chosen_method(rag: GraphRAG) -> None:
    answer = rag.ask(QUESTION, max_context_tokens=300, response_type="a line")
    assert answer.method == "local"
    assert answer.answer == rag.local(QUESTION, max_context_tokens=300).answer
    assert answer.usage["build_context"].seconds > 0
