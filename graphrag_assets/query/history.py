"""The conversation before a question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from graphrag_assets.errors import QueryError
from graphrag_assets.text.words import cut_text, encode

_MAX_TOKENS = 3_000


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

    def newest(self, max_questions: int) -> "ConversationHistory":
        """Return the turns from the last `max_questions` questions on."""
        places = [place for place, turn in enumerate(self.turns) if turn.role == "user"]
        first = places[-max_questions] if 0 < max_questions <= len(places) else 0
        return ConversationHistory(self.turns[first:] if max_questions else [])

    @property
    def questions(self) -> list[str]:
        """The user's turns."""
        return [turn.content for turn in self.turns if turn.role == "user"]

    @property
    def text(self) -> str:
        """A line per turn: as many of the newest as fit 3,000 tokens."""
        lines, left = list[str](), _MAX_TOKENS
        for turn in reversed(self.turns):
            line = cut_text(f"{turn.role}: {' '.join(turn.content.split())}", left)
            if not line:
                break
            lines.append(line)
            left -= len(encode(line)) + 1
        return "\n".join(reversed(lines))


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
