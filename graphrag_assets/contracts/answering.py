"""Types and base class of answering, which the embedded default and chat models share."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from graphrag_assets.contracts.plans import Plan
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.text.words import count_tokens, sentences

NO_ANSWER = "I am sorry but I am unable to answer this question given the provided data."
CLOSEST = "The index has no direct answer. The closest passages:"
"""Precedes passages that an answerer without a model shows instead of an answer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A row of the context: its section (Sources, Entities, …), its number in it, its title and its text.

    `weight`: the share of the corpus that it represents, 0 to 1; other than 1 only for reports. `sentences`: those that
    can be cited by their numbers, as in `[Data: Sources (12.3)]`; none if the evidence does not number them.
    """

    table: str
    number: int
    title: str
    text: str
    weight: float = 1.0
    sentences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The basis of an answer: the context as text, for a model's prompt, and as passages."""

    text: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The form of answers, and the conversation before the question.

    `response_type`: free text, such as "a list of 3 to 7 points". `language`: None means that of the question.
    `general_knowledge`: global answers may add what the data does not say, marked [LLM: verify].
    `history`: earlier turns of the conversation as text, the oldest first, for `arewrite` alone. `by_meaning`: the
    passages are ranked by vectors of an embedding model, so the first ones may match the question without sharing a
    word with it.
    """

    response_type: str = "multiple paragraphs"
    language: str | None = None
    general_knowledge: bool = False
    history: str = ""
    max_map_words: int = 500
    max_reduce_words: int = 1000
    by_meaning: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A part of an answer with its citations `[Data: …]`, and its importance for the question, 0 to 100."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A follow-up question, and how promising it is, 0 to 100."""

    question: str
    score: float


@dataclass(frozen=True, slots=True)
class Mapped:
    """The points and follow-up questions that a part of the data yields for a question."""

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
    """The kind of a question, and the reason for it."""

    kind: str
    reason: str
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class RewrittenQuestion:
    """A question that is understood by itself, and the questions that together cover it."""

    question: str
    questions: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Relevance:
    """Of the relevant passages, by number, the sentences that help to answer, from 1; others are left out or empty."""

    sentences: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of a question; None: the answerer makes none."""

    plan: Plan | None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Finding:
    """A value that answers a step, and the statement it rests on, which ends with its reference `[Data: …]`.

    `value`: "" if the statement answers the step but states no value.
    """

    value: str
    statement: str


@dataclass(frozen=True, slots=True)
class StepFindings:
    """What was found for a step, best first; nothing if the evidence does not answer it."""

    findings: tuple[Finding, ...] = ()
    usage: Usage = field(default_factory=Usage)


Pieces = AsyncGenerator[str | Reply, None]
"""A streamed answer: pieces of its text, and lastly the complete `Reply`."""

PLAIN = AnswerOptions()


class Answerer(ABC):
    """Turns a question and evidence into an answer; every statement ends with its `[Data: …]` reference.

    A subclass must have `arespond` alone. It replies `NO_ANSWER` if it finds nothing in the evidence; one without a
    model may show the closest passages after `CLOSEST`. Errors of a model are raised.
    """

    model: str = "custom"
    min_direct_score: ClassVar[float | None] = None
    """Minimum score of points that answer the question. If no report yields one, global search reads passages too.

    None: every point answers it, and global search reads reports alone.
    """

    @abstractmethod
    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        """Return an answer from one context."""

    async def stream_response(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Pieces:
        """`arespond` in pieces; by default in one."""
        reply = await self.arespond(question, evidence, options)
        yield reply.text
        yield reply

    async def amap(
        self,
        question: str,
        evidence: Evidence,
        follow_ups: int = 0,
        main_question: str | None = None,
        options: AnswerOptions = PLAIN,
    ) -> Mapped:
        """Return scored points from this part of the data, and up to `follow_ups` questions that it raises.

        `main_question`: the question of the whole investigation, if `question` is a step of it. By default the answer
        is one point.
        """
        reply = await self.arespond(question, evidence, options)
        points = () if reply.text == NO_ANSWER else (Point(reply.text, 50.0),)
        return Mapped(points, usage=reply.usage)

    async def areduce(
        self, question: str, points: Sequence[Point], options: AnswerOptions = PLAIN, drift: bool = False
    ) -> Reply:
        """Return one answer from the points of all parts; `drift`: they were found by a DRIFT search.

        By default the points are the evidence of `arespond`.
        """
        if not points:
            return Reply(NO_ANSWER)
        notes = tuple(Passage("Notes", place, "", point.text) for place, point in enumerate(points, 1))
        return await self.arespond(question, Evidence("\n\n".join(map(as_note, points)), notes), options)

    async def stream_reduction(
        self, question: str, points: Sequence[Point], options: AnswerOptions = PLAIN, drift: bool = False
    ) -> Pieces:
        """`areduce` in pieces; by default in one."""
        reply = await self.areduce(question, points, options, drift)
        yield reply.text
        yield reply

    async def ahypothesis(self, question: str, example: str) -> Reply:
        """Return a paragraph in the style of the report `example` that might answer `question`, to search with.

        By default the question, which has the words to search for.
        """
        return Reply(question)

    async def arate(self, question: str, reports: Sequence[str]) -> tuple[list[float | None], Usage]:
        """Return the relevance of each report, 0 to 5; None, as by default, if unknown."""
        return [None] * len(reports), Usage()

    async def arewrite(
        self, question: str, concepts: Sequence[str], count: int, options: AnswerOptions = PLAIN
    ) -> RewrittenQuestion:
        """Return the question without the conversation, and up to `count` parts of it, in the words of `concepts`.

        By default the question as it is.
        """
        return RewrittenQuestion(question)

    async def atest(
        self, question: str, passages: Sequence[Passage], rarity: Mapping[str, float] | None = None
    ) -> Relevance:
        """Return the passages that help to answer `question`, with their sentences that do; by default all.

        `rarity`: of terms of the question, in the whole index.
        """
        return Relevance({one.number: tuple(range(1, len(sentences(one.text)) + 1)) or (1,) for one in passages})

    async def aquestions(
        self, history: Sequence[str], evidence: Evidence, count: int = 5, options: AnswerOptions = PLAIN
    ) -> tuple[tuple[str, ...], Usage]:
        """Return up to `count` questions that `evidence` answers and that are not in `history`; by default none."""
        return (), Usage()

    async def achoose(self, question: str, kinds: Mapping[str, str]) -> Choice:
        """Return the kind of the question among `kinds` (name to description); empty, as by default, if unclear."""
        return Choice("", "")

    async def aplan(self, question: str) -> Planned:
        """Return the steps of the question; by default none: local search answers it in one."""
        return Planned(None)

    async def afind(self, question: str, evidence: Evidence, main_question: str) -> StepFindings:
        """Return the values that answer a step of the plan of `main_question`, best first."""
        return StepFindings()


def as_note(point: Point) -> str:
    """Return a point in the form that a reduction reads."""
    return f"-----Note (importance {point.score:g})-----\n{point.text.strip()}"


def best_points(points: Sequence[Point], max_tokens: int) -> list[Point]:
    """Return the relevant points whose notes fit `max_tokens`, best first; a point that does not fit is skipped."""
    relevant = sorted((p for p in points if p.score > 0 and p.text.strip()), key=lambda p: (-p.score, p.text))
    if sum(len(as_note(point).encode()) + 2 for point in relevant) <= max_tokens:  # a token has at least one byte
        return relevant
    chosen, left = [], max_tokens
    for point, tokens in zip(relevant, count_tokens([as_note(p) for p in relevant]), strict=True):
        if tokens + 2 <= left:  # with the empty line between notes
            chosen.append(point)
            left -= tokens + 2
    return chosen
