"""Conversation histories: what is kept, and its effect."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.errors import QueryError
from graphrag_assets.query import ConversationHistory, GraphRAG, Turn
from graphrag_assets.text.words import count_tokens

TALK = ConversationHistory([Turn("user", "A?"), Turn("assistant", "a."), Turn("user", "B?"), Turn("assistant", "b.")])


@pytest.mark.parametrize(
    "given",
    [
        TALK,
        TALK.turns,
        [("user", "A?"), ("assistant", "a."), ("user", "B?"), ("assistant", "b.")],
        [{"role": turn.role, "content": turn.content} for turn in TALK.turns],
    ],
)
def test_a_history_may_be_given_in_several_forms(given: object) -> None:
    assert ConversationHistory.of(given).turns == TALK.turns


@pytest.mark.parametrize("given", ["A?", 7, [("narrator", "x")], [{"content": "x"}], [("user",)], [("user", 3)]])
def test_invalid_history_is_rejected_with_an_example(rag: GraphRAG, given: object) -> None:
    with pytest.raises(QueryError, match="The history is"):
        rag.local("Who?", history=given)


def test_the_newest_turns_come_first_and_answers_only_when_wanted() -> None:
    assert [turn.content for turn in TALK.newest(1, user_turns_only=True)] == ["B?"]
    assert [turn.content for turn in TALK.newest(1, user_turns_only=False)] == ["b.", "B?"]
    assert [turn.content for turn in TALK.newest(9, user_turns_only=True)] == ["B?", "A?"]
    assert TALK.newest(0, user_turns_only=False) == []


@given(st.lists(st.text(min_size=1, max_size=80), max_size=8), st.integers(0, 120))
def test_a_history_never_exceeds_its_budget(said: list[str], budget: int) -> None:
    section = ConversationHistory([Turn("user", text) for text in said]).section(9, True, budget)
    if section is not None:
        assert count_tokens([section.text])[0] <= section.tokens <= budget or not section.text


def test_history_and_context_share_the_budget(rag: GraphRAG) -> None:
    history = [("user", f"What about the Niagara in the year {year}?") for year in range(1850, 1860)]
    for budget in (60, 150, 400):
        context = rag.context(
            "local", "Where is Valentia?", history=history, max_context_tokens=budget, conversation_history_max_turns=9
        )
        assert context.tokens <= budget
        assert context.history is not None
        assert context.history.tokens <= budget // 2
