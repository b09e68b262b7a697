"""Conversation histories: what is kept, and its effect."""

import pytest

from graphrag_assets.errors import QueryError
from graphrag_assets.query import ConversationHistory, GraphRAG, Turn

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


def test_history_and_context_share_the_budget(rag: GraphRAG) -> None:
    history = [("user", f"What about the Niagara in the year {year}?") for year in range(1850, 1860)]
    for budget in (60, 150, 400):
        context = rag.context(
            "local", "Where is Valentia?", history=history, max_context_tokens=budget, conversation_history_max_turns=9
        )
        assert context.tokens <= budget
        assert context.history is not None
        assert context.history.tokens <= budget // 2
