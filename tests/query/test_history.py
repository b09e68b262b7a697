"""Conversation histories: what is kept, and its effect."""

import pytest

from graphrag_assets.errors import QueryError
from graphrag_assets.query import ConversationHistory, GraphRAG, Turn
from graphrag_assets.text.words import tokenizer

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


def test_the_newest_turns_are_read_as_lines_of_at_most_3000_tokens() -> None:
    assert TALK.newest(1).text == "user: B?\nassistant: b."
    assert TALK.newest(5).turns == TALK.turns
    assert TALK.newest(0).text == ""
    long = ConversationHistory([Turn("user", "A?"), Turn("assistant", "The ship sailed. " * 2_000), Turn("user", "B?")])
    first, last = long.text.split("\n")
    assert first.startswith("assistant: The ship sailed.")
    assert last == "user: B?"
    assert 2_900 < len(tokenizer().encode_ordinary(long.text)) <= 3_000
