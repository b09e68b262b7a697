"""`ask` classifies questions and answers them by the fitting method."""

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.query.choice import kind_by_rules
from graphrag_assets.query.drift import DriftOptions


@pytest.mark.parametrize(
    ("question", "named", "kind"),
    [
        ("Who commanded the Niagara?", 1, "fact"),
        ("When was the Great Eastern sold, and to whom?", 1, "fact"),
        ("How are Cyrus Field and William Thomson connected?", 2, "relation"),
        ("What links the Niagara with Valentia?", 2, "relation"),
        ("What is the relationship between them?", 0, "open"),
        ("Compare the Niagara with the Agamemnon.", 2, "comparison"),
        ("How did Thomson and Whitehouse disagree?", 2, "comparison"),
        ("What are the main themes?", 0, "theme"),
        ("Summarise the collection.", 0, "theme"),
        ("What is the book about?", 0, "theme"),
        ("Give me an overview of the voyages.", 0, "theme"),
        ("Summarise what the Niagara did.", 1, "fact"),
        ("What did the oil of the lamps cost?", 0, "open"),
        ("How did investors react?", 0, "open"),
        ("What were the biggest problems?", 0, "theme"),
        ("What are the most common complaints?", 0, "theme"),
        ("Was sind die wichtigsten Themen?", 0, "theme"),
        ("Give me an overview of Cyrus Field", 1, "overview"),
        ("who was cyrus field", 1, "overview"),
        ("Wer war Klara Winter?", 1, "overview"),
        ('Where does it say "nine pence a gallon"?', 0, "passage"),
        ("船は何をしましたか？", 0, "open"),
    ],
)
def test_rules_choose_the_method_by_wording_and_named_entities(question: str, named: int, kind: str) -> None:
    assert kind_by_rules(question, named)[0] == kind


@pytest.mark.parametrize(
    ("question", "named", "earlier", "named_in_all", "kind"),
    [
        ("And in 1866?", 0, ["Compare the Niagara with the Agamemnon."], 2, "comparison"),
        ("And Valentia?", 1, ["How are Cyrus Field and William Thomson connected?"], 3, "relation"),
        ("Why?", 0, ["And in 1866?", "What are the main themes?"], 0, "theme"),
        ("And the Niagara?", 1, ["Who was Cyrus Field?"], 2, "overview"),
        ("Und 1866?", 0, ["Was sind die wichtigsten Themen?"], 0, "theme"),
        ("And in 1866?", 0, ["Who commanded the Niagara?", "Compare the ships."], 1, "fact"),  # it is complete
        ("Why was he dismissed?", 0, ["Compare the Niagara with the Agamemnon."], 2, "fact"),
        ("What are the main themes?", 0, ["Who was Cyrus Field?"], 1, "theme"),
        ("And compare the two ships.", 0, ["What are the main themes?"], 0, "comparison"),
        ("List all ships.", 0, [], 0, "list"),
        ("Name every person who was knighted.", 0, [], 0, "list"),
        ("And in 1866?", 0, [], 0, "open"),
    ],
)
def test_a_question_that_continues_the_conversation_is_of_the_kind_of_the_one_before(
    question: str, named: int, earlier: list[str], named_in_all: int, kind: str
) -> None:
    assert kind_by_rules(question, named, earlier, named_in_all)[0] == kind


def test_ask_sees_the_history(rag: GraphRAG) -> None:
    history = [("user", "Compare the Niagara with the Agamemnon."), ("assistant", "Both carried half of the cable.")]
    answer = rag.ask("And in 1866?", history=history, max_context_tokens=2000)
    assert answer.method == "drift"
    assert str(answer.choice) == (
        "drift search: it follows on from 'Compare the Niagara with the Agamemnon.': it compares ('compare') (by rules)"
    )


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who commanded the Niagara?", "local search: it names 1 entity of the index (by rules)"),
        (
            "How are William Hudson and Valentia connected?",
            "local search (hops=2): it asks how 2 entities that it names are connected (by rules)",
        ),
        ("Compare the Niagara with the Agamemnon.", "drift search: it compares ('compare') (by rules)"),
        (
            "What are the main themes?",
            "global search: it asks about the whole ('main themes') and names no entity of the index (by rules)",
        ),
        (
            "who was william hudson",
            "local search: it asks who or what something is, and names 1 entity of the index (by rules)",
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
    answer = rag.ask("Compare the Niagara with the Agamemnon.", max_context_tokens=300)
    assert answer.method == "drift"
    assert DriftOptions(max_context_tokens=300).of_steps.max_context_tokens == 300
    assert answer.choice is not None
    assert answer.usage["build_context"].seconds > 0
