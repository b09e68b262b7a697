"""What answering a question takes and gives, whoever answers: the embedded default or a chat model."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from graphrag_assets.text import count_tokens

NO_ANSWER = "I am sorry but I am unable to answer this question given the provided data."
CLOSEST = "The index has no direct answer. The closest passages:"
"""Precedes passages that an answerer without a model shows in place of an answer."""


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
class AnswerOptions:
    """The form of answers, and what was said before.

    `response_type`: free text, such as "a list of 3 to 7 points". `language`: None follows the question.
    `general_knowledge`: global answers may add what the data does not tell, marked [LLM: verify].
    `history`: earlier turns of the conversation as text, the oldest first. `by_meaning`: the passages are ranked by
    vectors that know meanings, so that the first may be close to the question without a word of it.
    """

    response_type: str = "multiple paragraphs"
    language: str | None = None
    general_knowledge: bool = False
    history: str = ""
    max_map_words: int = 500
    max_reduce_words: int = 1000
    by_meaning: bool = False


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


@dataclass(frozen=True, slots=True)
class Choice:
    """The kind of a question, one of those offered, and why it is thought to be of that kind."""

    kind: str
    reason: str
    usage: Usage = field(default_factory=Usage)


Pieces = AsyncGenerator[str | Reply, None]
"""An answer as it comes: pieces of its text, and lastly the whole `Reply`."""

PLAIN = AnswerOptions()


class Answerer(Protocol):
    """Turns a question and evidence into an answer; every statement ends with its `[Data: …]` reference.

    An answerer that finds nothing in the evidence replies `NO_ANSWER`, or gives no points. One without a model may show
    the passages that come closest, after `CLOSEST`. Errors of a model are raised.
    """

    @property
    def model(self) -> str:
        """Name of what answers."""

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        """An answer from one context."""

    def stream_response(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Pieces:
        """`arespond` in pieces."""

    async def amap(
        self,
        question: str,
        evidence: Evidence,
        follow_ups: int = 0,
        main_question: str | None = None,
        options: AnswerOptions = PLAIN,
    ) -> Mapped:
        """What this part of the data says, as scored points, and up to `follow_ups` questions it raises.

        `main_question`: what the whole investigation is about, where `question` is a step of it.
        """

    async def areduce(
        self, question: str, points: Sequence[Point], options: AnswerOptions = PLAIN, drift: bool = False
    ) -> Reply:
        """One answer from the points of all parts; `drift`: they were found by a DRIFT search."""

    def stream_reduction(
        self, question: str, points: Sequence[Point], options: AnswerOptions = PLAIN, drift: bool = False
    ) -> Pieces:
        """`areduce` in pieces."""

    async def ahypothesis(self, question: str, example: str) -> Reply:
        """A paragraph like `example`, a report, that might answer `question`: to search with, not to show."""

    async def arate(self, question: str, report: str, repeat: int = 0) -> tuple[float, Usage]:
        """How much `report` is worth reading for `question`, from 0 to 5; `repeat` numbers independent ratings."""

    async def aquestions(
        self, history: Sequence[str], evidence: Evidence, count: int = 5, options: AnswerOptions = PLAIN
    ) -> tuple[tuple[str, ...], Usage]:
        """Up to `count` questions that `evidence` answers and that are not in `history`."""

    async def achoose(self, question: str, kinds: Mapping[str, str]) -> Choice:
        """Which of `kinds` (name to description) the question is of; the kind is empty when that cannot be told."""


def as_note(point: Point) -> str:
    """A point as a reduction reads it."""
    return f"-----Note (importance {point.score:g})-----\n{point.text.strip()}"


def within(points: Sequence[Point], max_tokens: int) -> list[Point]:
    """The points that say anything, best first, as many as their notes fit `max_tokens`.

    One that is too long for what is left is skipped.
    """
    relevant = sorted((p for p in points if p.score > 0 and p.text.strip()), key=lambda p: (-p.score, p.text))
    kept, left = [], max_tokens
    for point, tokens in zip(relevant, count_tokens([as_note(p) for p in relevant]), strict=True):
        if tokens + 2 <= left:  # with the empty line between notes
            kept.append(point)
            left -= tokens + 2
    return kept
