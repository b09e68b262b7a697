"""Answers by a chat model: the same `Answerer` as the embedded default's, its prompts the query templates.

Each request is made by a function of its own, so that an answer can be streamed from the same request.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from pydantic import Field, model_validator

from graphrag_assets.models.answering import NO_ANSWER, Evidence, FollowUp, Mapped, Point, Reply, Usage
from graphrag_assets.models.event_loop import wait_for
from graphrag_assets.models.llm.options import ChatRequest, Completion
from graphrag_assets.models.llm.structured import Salvaged
from graphrag_assets.models.prompts import Prompts, prompt_text
from graphrag_assets.models.tasks.chat import NOWHERE, Chat, Origin, usage_of
from graphrag_assets.models.tasks.formats import AnswerForm, Form, RecordsForm, Score, Stars, Text
from graphrag_assets.text import count_tokens

MIDDLE_SCORE = 50.0  # of a point or question that was not scored
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The form of answers.

    `response_type`: free text, such as "a list of 3 to 7 points". `language`: None follows the question.
    `general_knowledge`: global answers may add what the data does not tell, marked [LLM: verify].
    `max_reduce_tokens` limits the notes that an answer is put together from, best first.
    """

    response_type: str = "multiple paragraphs"
    language: str | None = None
    general_knowledge: bool = False
    max_map_words: int = 500
    max_reduce_words: int = 1000
    max_reduce_tokens: int = 12_000
    encoding: str = "o200k_base"


class ScoredPoint(Form):
    other_names: ClassVar = {"text": "description", "point": "description", "answer": "description"}
    description: Text
    score: Score = None


class MapAnswer(RecordsForm):
    points: Salvaged[ScoredPoint] = Field(default_factory=list)


class ScoredQuestion(Form):
    other_names: ClassVar = {"query": "question", "text": "question"}
    question: Text
    score: Score = None

    @model_validator(mode="before")
    @classmethod
    def _plain_text(cls, data: object) -> object:
        return {"question": data} if isinstance(data, str) else data


class DriftAnswer(RecordsForm):
    other_names: ClassVar = {"follow_up_queries": "follow_ups", "follow_up_questions": "follow_ups"}
    points: Salvaged[ScoredPoint] = Field(default_factory=list)
    follow_ups: Salvaged[ScoredQuestion] = Field(default_factory=list)


class Questions(RecordsForm):
    questions: Salvaged[Text] = Field(default_factory=list)


class CommunityRating(AnswerForm):
    reason: Text = ""
    rating: Stars = None

    @model_validator(mode="after")
    def _rated(self) -> "CommunityRating":
        if self.rating is None:
            raise ValueError("rating must be a number from 0 to 5")
        return self


@dataclass(frozen=True)
class ChatAnswerer:
    """Answers by a chat model; an `Answerer` with asynchronous twins.

    Errors of the model are raised: an empty answer would hide them. Without evidence nothing is asked.
    """

    chat: Chat
    prompts: Prompts
    model: str
    options: AnswerOptions = field(default_factory=AnswerOptions)
    origin: Origin = NOWHERE

    def respond(self, question: str, evidence: Evidence) -> Reply:
        """An answer from one context."""
        return wait_for(self.arespond(question, evidence))

    def map(self, question: str, evidence: Evidence, follow_ups: int = 0) -> Mapped:
        """What this part of the data says, as scored points, and up to `follow_ups` questions it raises."""
        return wait_for(self.amap(question, evidence, follow_ups))

    def reduce(self, question: str, points: Sequence[Point]) -> Reply:
        """One answer from the points of all parts."""
        return wait_for(self.areduce(question, points))

    async def arespond(self, question: str, evidence: Evidence, history: str | None = None) -> Reply:
        """`respond`, with what was said before, if anything."""
        if not evidence.text.strip():
            return Reply(NO_ANSWER)
        completion, usage = await self._complete(self.respond_request(question, evidence, history))
        return Reply(completion.text.strip() or NO_ANSWER, usage)

    async def amap(
        self, question: str, evidence: Evidence, follow_ups: int = 0, main_question: str | None = None
    ) -> Mapped:
        """`map`; `main_question`: what the whole investigation is about, where `question` is a step of it."""
        if not evidence.text.strip():
            return Mapped()
        completion, usage = await self._complete(self.map_request(question, evidence, follow_ups, main_question))
        answer = completion.parsed
        raised = _follow_ups(answer.follow_ups, follow_ups) if isinstance(answer, DriftAnswer) else ()
        return Mapped(_points(answer.points), raised, usage)

    async def areduce(self, question: str, points: Sequence[Point], drift: bool = False) -> Reply:
        """`reduce`; `drift`: the points were found by a DRIFT search."""
        relevant = [point for point in points if point.score > 0 and point.text.strip()]
        if not relevant:
            return Reply(NO_ANSWER)
        completion, usage = await self._complete(self.reduce_request(question, relevant, drift))
        return Reply(completion.text.strip() or NO_ANSWER, usage)

    async def ahypothesis(self, question: str, example: str) -> tuple[str, Usage]:
        """A paragraph like `example`, a report, that might answer `question`: to search with, not to show."""
        messages = self.prompts.render("hypothetical_answer", example=example, question=question)
        completion, usage = await self._complete(self.origin.request("hypothetical_answer", messages))
        return completion.text.strip() or question, usage

    async def aquestions(
        self, history: Sequence[str], evidence: Evidence, count: int = 5
    ) -> tuple[tuple[str, ...], Usage]:
        """Up to `count` questions that `evidence` answers and that are not in `history`."""
        messages = self.prompts.render(
            "question_generation",
            context=evidence.text,
            count=count,
            history="\n".join(f"- {question}" for question in history) or None,
            language=self.options.language,
        )
        completion, usage = await self._complete(self.origin.request("question_generation", messages, Questions))
        new = dict.fromkeys(q for q in completion.parsed.questions if q and q not in history)
        return tuple(new)[:count], usage

    async def arate(self, question: str, report: str) -> tuple[float, Usage]:
        """How much `report` is worth reading for `question`, from 0 to 5."""
        messages = self.prompts.render("community_rating", report=report, question=question)
        completion, usage = await self._complete(self.origin.request("community_rating", messages, CommunityRating))
        return completion.parsed.rating, usage

    def respond_request(self, question: str, evidence: Evidence, history: str | None = None) -> ChatRequest:
        """Evidence of text units alone is basic search's, any other local search's."""
        basic = all(passage.table == "Sources" for passage in evidence.passages)
        task = "basic_search" if basic and evidence.passages else "local_search"
        messages = self.prompts.render(
            task, context=evidence.text, question=question, history=history, **self._form(words=None)
        )
        return self.origin.request(task, messages)

    def map_request(
        self, question: str, evidence: Evidence, follow_ups: int = 0, main_question: str | None = None
    ) -> ChatRequest:
        """Where follow-up questions are wanted it is DRIFT: of reports alone its primer, of other rows a step."""
        given: dict[str, object] = {
            "context": evidence.text,
            "question": question,
            "language": self.options.language,
        }
        if not follow_ups:
            messages = self.prompts.render("global_map", max_words=self.options.max_map_words, **given)
            return self.origin.request("global_map", messages, MapAnswer)
        if all(passage.table == "Reports" for passage in evidence.passages):
            messages = self.prompts.render("drift_primer", follow_ups=follow_ups, **given)
            return self.origin.request("drift_primer", messages, DriftAnswer)
        messages = self.prompts.render("drift_local", follow_ups=follow_ups, main_question=main_question, **given)
        return self.origin.request("drift_local", messages, DriftAnswer)

    def reduce_request(self, question: str, points: Sequence[Point], drift: bool = False) -> ChatRequest:
        """The notes within the token limit, the most important first."""
        given = {
            "points": _notes(points, self.options.max_reduce_tokens, self.options.encoding),
            "question": question,
            **self._form(self.options.max_reduce_words),
        }
        if drift:
            return self.origin.request("drift_reduce", self.prompts.render("drift_reduce", **given))
        allowed = self.options.general_knowledge
        knowledge = prompt_text(self.prompts.render("global_knowledge")) if allowed else None
        messages = self.prompts.render("global_reduce", general_knowledge=knowledge, **given)
        return self.origin.request("global_reduce", messages)

    def _form(self, words: int | None) -> dict[str, object]:
        form: dict[str, object] = {
            "response_type": self.options.response_type,
            "no_answer": NO_ANSWER,
            "language": self.options.language,
        }
        return form | {"max_words": words} if words else form

    async def _complete(self, request: ChatRequest) -> tuple[Completion, Usage]:
        started = time.perf_counter()
        completion = await self.chat.complete(request)
        return completion, replace(usage_of(completion), seconds=time.perf_counter() - started)


def _points(found: Sequence[ScoredPoint]) -> tuple[Point, ...]:
    """Points that say something and matter, best first."""
    points = [Point(p.description, MIDDLE_SCORE if p.score is None else p.score) for p in found if p.description]
    return tuple(sorted((p for p in points if p.score > 0), key=lambda p: (-p.score, p.text)))


def _follow_ups(found: Sequence[ScoredQuestion], most: int) -> tuple[FollowUp, ...]:
    raised: dict[str, FollowUp] = {}
    for one in found:
        if one.question:
            score = MIDDLE_SCORE if one.score is None else one.score
            raised.setdefault(one.question, FollowUp(one.question, score))
    return tuple(sorted(raised.values(), key=lambda f: (-f.score, f.question))[:most])


def _notes(points: Sequence[Point], max_tokens: int, encoding: str) -> str:
    """The points within `max_tokens`, best first; one that is too long for what is left is skipped."""
    notes = [
        f"-----Note (importance {point.score:g})-----\n{point.text.strip()}"
        for point in sorted(points, key=lambda point: (-point.score, point.text))
    ]
    kept, left = [], max_tokens
    for note, tokens in zip(notes, count_tokens(notes, encoding), strict=True):
        if tokens + 2 <= left:
            kept.append(note)
            left -= tokens + 2
    return "\n\n".join(kept)
