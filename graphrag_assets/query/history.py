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
    def of(cls, given: object) -> "ConversationHistory":
        """The history from a list of turns, each a `Turn`, (role, content), or {"role", "content"}; None: no turns.

        Raises:
            QueryError: it is something else.
        """
        if isinstance(given, ConversationHistory):
            return given
        if given is None:
            return cls()
        if not isinstance(given, Iterable) or isinstance(given, str | bytes):
            raise _rejected(given)
        return cls([_turn(one) for one in given])

    def add(self, question: str, answer: object) -> None:
        """Append a question and its answer (a text, or an `Answer`)."""
        text = getattr(answer, "answer", answer)
        self.turns += [Turn("user", question), Turn("assistant", str(text))]

    def newest(self, max_turns: int, user_turns_only: bool) -> list[Turn]:
        """The turns of the last `max_turns` questions, the newest first."""
        found: list[Turn] = []
        questions = 0
        for turn in reversed(self.turns):
            if questions == max_turns:
                break
            questions += turn.role == "user"
            if turn.role == "user" or not user_turns_only:
                found.append(turn)
        return found

    def earlier_questions(self, max_turns: int) -> list[str]:
        """The user's last `max_turns` turns, the newest first."""
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
        kept = fill(HISTORY, frame, budget)
        text = "\n".join(f"{turn.title}: {turn.text}" for turn in reversed(kept.passages))
        return Section(HISTORY.name, kept.frame, (), text, kept.tokens)


History = ConversationHistory | Sequence[Turn | tuple[str, str] | Mapping[str, str]] | None
"""The forms in which a history may be passed."""


def _turn(given: Any) -> Turn:
    if isinstance(given, Turn):
        return given
    try:
        role, content = (given["role"], given["content"]) if isinstance(given, dict) else given
    except (KeyError, TypeError, ValueError):
        raise _rejected(given) from None
    if role not in ("user", "assistant") or not isinstance(content, str):
        raise _rejected(given)
    return Turn(role, content)


def _rejected(given: Any) -> QueryError:
    return QueryError(
        f"The history is {given!r}; it must be a ConversationHistory or a list of turns, each a Turn, "
        'a pair such as ("user", "Who was it?"), or {"role": "assistant", "content": "…"}.'
    )
