"""What answering a question takes and gives, whoever answers: the embedded default or a chat model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

NO_ANSWER = "I am sorry but I am unable to answer this question given the provided data."


@dataclass(frozen=True, slots=True)
class Passage:
    """A row of the context: its section (Sources, Entities, …), its number in it, what it is about, its text.

    `weight`: how much of the corpus it stands for, 0 to 1; only reports differ in it.
    """

    table: str
    number: int
    title: str
    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that an answer may rest on: the context as text, for a model's prompt, and as passages."""

    text: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a part of a search cost. Calls, tokens and cost (USD) are a model's; seconds are wall-clock."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost + other.cost,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Point:
    """A part of an answer with its citations `[Data: …]`, and how important it is for the question, 0 to 100."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question worth asking next, and how promising it is, 0 to 100."""

    question: str
    score: float


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a part of the data says to a question."""

    points: tuple[Point, ...] = ()
    follow_ups: tuple[FollowUp, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with its citations."""

    text: str
    usage: Usage = field(default_factory=Usage)


class Answerer(Protocol):
    """Turns a question and evidence into an answer; every statement ends with its `[Data: …]` reference.

    An answerer that finds nothing in the evidence replies `NO_ANSWER`, or gives no points.
    """

    @property
    def model(self) -> str:
        """Name of what answers."""

    def respond(self, question: str, evidence: Evidence) -> Reply:
        """An answer from one context."""

    def map(self, question: str, evidence: Evidence, follow_ups: int = 0) -> Mapped:
        """What this part of the data says, as scored points, and up to `follow_ups` questions it raises."""

    def reduce(self, question: str, points: Sequence[Point]) -> Reply:
        """One answer from the points of all parts."""
