"""The conversation before a question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from graphrag_assets.errors import QueryError
from graphrag_assets.query.context import Layout, Section, fill

HISTORY = Layout("Conversation History", {"turn": "role", "content": "content"}, title="role", text="content")


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of the user or the assistant."""

    role: Literal["user", "assistant"]
    content: str


@dataclass
class ConversationHistory:
    """The turns of a conversation, the oldest first. `add` appends a question and its answer."""

    turns: list[Turn] = field(default_factory=list)

    @classmethod
    def of(cls, history: object) -> "ConversationHistory":
        """Return the history from a list of turns, each a `Turn`, (role, content), or {"role", "content"}; None: no
        turns.

        Raises:
            QueryError: it is something else.
        """
        if isinstance(history, ConversationHistory):
            return history
        if history is not None and (not isinstance(history, Iterable) or isinstance(history, str | bytes)):
            raise _rejected(history)
        return cls([_turn(one) for one in history or ()])

    def add(self, question: str, answer: object) -> None:
        """Append a question and its answer (a text, or an `Answer`)."""
        text = getattr(answer, "answer", answer)
        self.turns += [Turn("user", question), Turn("assistant", str(text))]

    def newest(self, max_turns: int, user_turns_only: bool) -> list[Turn]:
        """Return the turns of the last `max_turns` questions, the newest first."""
        newest: list[Turn] = []
        questions = 0
        for turn in reversed(self.turns):
            if questions == max_turns:
                break
            questions += turn.role == "user"
            if turn.role == "user" or not user_turns_only:
                newest.append(turn)
        return newest

    def earlier_questions(self, max_turns: int) -> list[str]:
        """Return the user's last `max_turns` turns, the newest first."""
        return [turn.content for turn in self.newest(max_turns, user_turns_only=True)]

    def section(self, max_turns: int, user_turns_only: bool, budget: int) -> Section | None:
        """As many of the newest turns as fit `budget` tokens, in their order; None if there are none."""
        turns = self.newest(max_turns, user_turns_only)
        if not turns:
            return None
        frame = pl.DataFrame(
            {
                "human_readable_id": range(len(turns)),
                "role": [turn.role for turn in turns],
                "content": [" ".join(turn.content.split()) for turn in turns],
            }
        )
        section = fill(HISTORY, frame, budget)
        text = "\n".join(f"{turn.title}: {turn.text}" for turn in reversed(section.passages))
        return Section(HISTORY.name, section.frame, (), text, section.tokens)


History = ConversationHistory | Sequence[Turn | tuple[str, str] | Mapping[str, str]] | None
"""The forms in which a history may be passed."""


def _turn(turn: Any) -> Turn:
    if isinstance(turn, Turn):
        return turn
    try:
        role, content = (turn["role"], turn["content"]) if isinstance(turn, dict) else turn
    except (KeyError, TypeError, ValueError):
        raise _rejected(turn) from None
    if role not in ("user", "assistant") or not isinstance(content, str):
        raise _rejected(turn)
    return Turn(role, content)


def _rejected(history: Any) -> QueryError:
    return QueryError(
        f"The history is {history!r}; it must be a ConversationHistory or a list of turns, each a Turn, "
        'a pair such as ("user", "Who was it?"), or {"role": "assistant", "content": "…"}.'
    )
