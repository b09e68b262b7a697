"""Answers to questions by a chat model: an `Answerer` like the embedded default's, with the query templates."""

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field, model_validator

from graphrag_assets.answering import (
    NO_ANSWER,
    PLAIN,
    AnswerOptions,
    Choice,
    Evidence,
    FollowUp,
    Found,
    Linked,
    Mapped,
    Named,
    Passage,
    Pieces,
    Planned,
    Point,
    Relevance,
    Reply,
    Rewritten,
    Usage,
    as_note,
)
from graphrag_assets.llm.chat_client import ChatModel
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.llm.prompts import Prompts, fence, prompt_text
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, RecordsForm, Score, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Origin, usage_of
from graphrag_assets.llm.tasks.link_question import links_of
from graphrag_assets.llm.tasks.plan_question import PlannedSteps, StepValues
from graphrag_assets.llm.tasks.rate_reports import ratings_of
from graphrag_assets.llm.tasks.relevance import relevance_of
from graphrag_assets.llm.usage import UsageMeter
from graphrag_assets.plans import MAX_STEPS, StepKind

MIDDLE_SCORE = 50.0  # of a point or question that was not scored


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


class SubQuestions(RecordsForm):
    other_names: ClassVar = {"sub_questions": "questions", "rewritten": "question"}
    question: Text = ""
    questions: Salvaged[Text] = Field(default_factory=list)


class QuestionKind(AnswerForm):
    other_names: ClassVar = {"type": "kind", "why": "reason"}
    kind: Text = ""
    reason: Text = ""


@dataclass(frozen=True)
class ChatAnswerer:
    """An `Answerer` by a chat model. Errors are raised: an empty answer would hide them.

    Without evidence nothing is sent.
    """

    chat: ChatModel
    prompts: Prompts
    model: str
    origin: Origin = NOWHERE

    @property
    def min_direct_score(self) -> None:
        """None: the model's points answer the question."""
        return None

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        """An answer from one context."""
        return await self._reply(self._respond_request(question, evidence, options))

    def stream_response(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Pieces:
        """`arespond` in pieces."""
        return self._stream(self._respond_request(question, evidence, options))

    async def amap(
        self,
        question: str,
        evidence: Evidence,
        follow_ups: int = 0,
        main_question: str | None = None,
        options: AnswerOptions = PLAIN,
    ) -> Mapped:
        """The points of this part of the data, scored, and up to `follow_ups` further questions."""
        if not evidence.text.strip():
            return Mapped()
        request = self._map_request(question, evidence, follow_ups, main_question, options)
        completion, usage = await self._complete(request)
        answer = completion.parsed
        raised = _follow_ups(answer.follow_ups, follow_ups) if isinstance(answer, DriftAnswer) else ()
        return Mapped(_points(answer.points), raised, usage)

    async def areduce(
        self, question: str, points: Sequence[Point], options: AnswerOptions = PLAIN, drift: bool = False
    ) -> Reply:
        """One answer from the points of all parts."""
        return await self._reply(self._reduce_request(question, points, options, drift))

    def stream_reduction(
        self, question: str, points: Sequence[Point], options: AnswerOptions = PLAIN, drift: bool = False
    ) -> Pieces:
        """`areduce` in pieces."""
        return self._stream(self._reduce_request(question, points, options, drift))

    async def ahypothesis(self, question: str, example: str) -> Reply:
        """A paragraph like `example`, a report, that might answer `question`."""
        messages = self.prompts.render("hypothetical_answer", example=example, question=question)
        completion, usage = await self._complete(self.origin.request("hypothetical_answer", messages))
        return Reply(completion.text.strip() or question, usage)

    async def aquestions(
        self, history: Sequence[str], evidence: Evidence, count: int = 5, options: AnswerOptions = PLAIN
    ) -> tuple[tuple[str, ...], Usage]:
        """Up to `count` questions that `evidence` answers and that are not in `history`."""
        if not evidence.text.strip():
            return (), Usage()
        messages = self.prompts.render(
            "question_generation",
            context=evidence.text,
            count=count,
            history="\n".join(f"- {question}" for question in history) or None,
            language=options.language,
        )
        completion, usage = await self._complete(self.origin.request("question_generation", messages, Questions))
        asked = {question.casefold().strip() for question in history}
        new = {q.casefold().strip(): q for q in reversed(completion.parsed.questions) if q}
        return tuple(q for key, q in reversed(new.items()) if key not in asked)[:count], usage

    async def arate(self, question: str, reports: Sequence[str], repeat: int = 0) -> tuple[list[float | None], Usage]:
        """The relevance of each report for `question`, from 0 to 5; None if the answer leaves it out."""
        started = time.perf_counter()
        ratings, usage = await ratings_of(self.chat, self.prompts, question, reports, repeat, self.origin)
        return ratings, replace(usage, seconds=time.perf_counter() - started)

    async def alink(self, question: str, options: AnswerOptions = PLAIN) -> Linked:
        """The names that the question means, and keywords for particulars and for themes."""
        started = time.perf_counter()
        found = await links_of(self.chat, self.prompts, question, _said_before(options), self.origin)
        return replace(found, usage=replace(found.usage, seconds=time.perf_counter() - started))

    async def arewrite(
        self, question: str, concepts: Sequence[str], count: int, options: AnswerOptions = PLAIN
    ) -> Rewritten:
        """The question without the conversation, and up to `count` questions that together cover it."""
        messages = self.prompts.render(
            "sub_questions",
            concepts="\n".join(f"- {concept}" for concept in concepts),
            question=question,
            count=count,
            history=_said_before(options),
        )
        completion, usage = await self._complete(self.origin.request("sub_questions", messages, SubQuestions))
        said = completion.parsed
        return Rewritten(said.question or question, tuple(dict.fromkeys(filter(None, said.questions)))[:count], usage)

    async def atest(
        self, question: str, passages: Sequence[Passage], rarity: Mapping[str, float] | None = None
    ) -> Relevance:
        """The passages that help to answer `question`, with their sentences that do."""
        started = time.perf_counter()
        found = await relevance_of(self.chat, self.prompts, question, passages, self.origin)
        return replace(found, usage=replace(found.usage, seconds=time.perf_counter() - started))

    async def aplan(self, question: str, options: AnswerOptions = PLAIN) -> Planned:
        """The steps of the question, understood in the conversation."""
        messages = self.prompts.render(
            "plan_question", question=question, max_steps=MAX_STEPS, history=_said_before(options)
        )
        completion, usage = await self._complete(self.origin.request("plan_question", messages, PlannedSteps))
        return Planned(completion.parsed.plan(question, self.model), usage)

    async def afind(
        self,
        kind: StepKind,
        question: str,
        evidence: Evidence,
        named: Sequence[Named] = (),
        main_question: str | None = None,
        options: AnswerOptions = PLAIN,
    ) -> Found:
        """The values that answer a step, each with a statement that cites the evidence."""
        if not evidence.text.strip():
            return Found()
        messages = self.prompts.render(
            "answer_step", context=evidence.text, kind=kind.value, question=question, main_question=main_question
        )
        completion, usage = await self._complete(self.origin.request("answer_step", messages, StepValues))
        return Found(tuple(completion.parsed.findings), usage)

    async def achoose(self, question: str, kinds: Mapping[str, str], options: AnswerOptions = PLAIN) -> Choice:
        """The kind of the question, one of `kinds`."""
        listed = "\n".join(f"- {kind}: {description}" for kind, description in kinds.items())
        messages = self.prompts.render("question_kind", question=question, kinds=listed, history=_said_before(options))
        completion, usage = await self._complete(self.origin.request("question_kind", messages, QuestionKind))
        said = completion.parsed
        kind = said.kind.strip().casefold().strip("\"'.")
        return Choice(kind if kind in kinds else "", said.reason, usage)

    def _respond_request(self, question: str, evidence: Evidence, options: AnswerOptions) -> ChatRequest | None:
        """The request for an answer: basic search's for evidence of text units alone, else local search's."""
        if not evidence.text.strip():
            return None
        basic = all(passage.table == "Sources" for passage in evidence.passages)
        task = "basic_search" if basic and evidence.passages else "local_search"
        messages = self.prompts.render(task, context=evidence.text, question=question, **_form(options))
        return self.origin.request(task, messages)

    def _map_request(
        self, question: str, evidence: Evidence, follow_ups: int, main_question: str | None, options: AnswerOptions
    ) -> ChatRequest:
        """The request for points: lazy search's for numbered sentences, DRIFT's (its primer or a step) for follow-up
        questions, else global search's."""
        given: dict[str, object] = {"context": evidence.text, "question": question, "language": options.language}
        history = _said_before(options)
        if not follow_ups:
            task = "lazy_map" if any(passage.sentences for passage in evidence.passages) else "global_map"
            messages = self.prompts.render(task, max_words=options.max_map_words, history=history, **given)
            return self.origin.request(task, messages, MapAnswer)
        if main_question is None:
            messages = self.prompts.render("drift_primer", follow_ups=follow_ups, history=history, **given)
            return self.origin.request("drift_primer", messages, DriftAnswer)
        messages = self.prompts.render("drift_local", follow_ups=follow_ups, main_question=main_question, **given)
        return self.origin.request("drift_local", messages, DriftAnswer)

    def _reduce_request(
        self, question: str, points: Sequence[Point], options: AnswerOptions, drift: bool
    ) -> ChatRequest | None:
        """The request for one answer from the points, in the given order."""
        if not points:
            return None
        given = {
            "points": "\n\n".join(map(as_note, points)),
            "question": question,
            "max_words": options.max_reduce_words,
            **_form(options),
        }
        if drift:
            return self.origin.request("drift_reduce", self.prompts.render("drift_reduce", **given))
        knowledge = prompt_text(self.prompts.render("global_knowledge")) if options.general_knowledge else None
        messages = self.prompts.render("global_reduce", general_knowledge=knowledge, **given)
        return self.origin.request("global_reduce", messages)

    async def _complete(self, request: ChatRequest) -> tuple[Completion, Usage]:
        started = time.perf_counter()
        completion = await self.chat.complete(request)
        return completion, replace(usage_of(completion), seconds=time.perf_counter() - started)

    async def _reply(self, request: ChatRequest | None) -> Reply:
        """The answer in one piece; without a request the fixed answer."""
        if request is None:
            return Reply(NO_ANSWER)
        completion, usage = await self._complete(request)
        return Reply(completion.text.strip() or NO_ANSWER, usage)

    async def _stream(self, request: ChatRequest | None) -> Pieces:
        """`_reply` in pieces."""
        if request is None:
            yield NO_ANSWER
            yield Reply(NO_ANSWER)
            return
        started = time.perf_counter()
        metered = copy.copy(self.chat)  # the same connections, limits and ledger
        metered.usage = UsageMeter()  # separates the cost of this answer from that of concurrent ones
        text: list[str] = []
        try:
            async for piece in metered.stream(request):
                text.append(piece)
                yield piece
        finally:
            used = metered.usage.total
            self.chat.usage.add(request.task, used)
        seconds = time.perf_counter() - started
        usage = Usage(used.calls, used.prompt_tokens, used.completion_tokens, used.cost_usd, seconds)
        yield Reply("".join(text).strip() or NO_ANSWER, usage)


def _form(options: AnswerOptions) -> dict[str, Any]:
    return {
        "response_type": options.response_type,
        "no_answer": NO_ANSWER,
        "language": options.language,
        "history": _said_before(options),
    }


def _said_before(options: AnswerOptions) -> str | None:
    """The history, fenced: an earlier answer may quote instructions from a document."""
    return fence(options.history, "conversation") if options.history else None


def _points(found: Sequence[ScoredPoint]) -> tuple[Point, ...]:
    """Points with text and a positive score, best first."""
    points = [Point(p.description, MIDDLE_SCORE if p.score is None else p.score) for p in found if p.description]
    return tuple(sorted((p for p in points if p.score > 0), key=lambda p: (-p.score, p.text)))


def _follow_ups(found: Sequence[ScoredQuestion], limit: int) -> tuple[FollowUp, ...]:
    raised: dict[str, FollowUp] = {}
    for one in found:
        if one.question:
            score = MIDDLE_SCORE if one.score is None else one.score
            raised.setdefault(one.question, FollowUp(one.question, score))
    return tuple(sorted(raised.values(), key=lambda f: (-f.score, f.question))[:limit])
