"""Answers to questions by a chat model: an `Answerer` like the embedded default's, with the query templates."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from graphrag_assets.contracts.answering import (
    NO_ANSWER,
    PLAIN,
    Answerer,
    AnswerOptions,
    Choice,
    Evidence,
    Finding,
    FollowUp,
    Mapped,
    Passage,
    Pieces,
    Planned,
    Point,
    Relevance,
    Reply,
    RewrittenQuestion,
    StepFindings,
    as_note,
)
from graphrag_assets.contracts.plans import MAX_STEPS
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts, fence, prompt_text
from graphrag_assets.llm.task import TaskModel, ask_model, usage_of
from graphrag_assets.llm.tasks import question_forms as tasks
from graphrag_assets.llm.tasks.verdicts import ratings_of, relevance_of

MIDDLE_SCORE = 50.0  # of a point or question that was not scored


@dataclass(frozen=True)
class ChatAnswerer(Answerer):
    """An `Answerer` by a chat model, which is asked nothing without evidence. Errors are raised."""

    chat: ChatModel
    prompts: Prompts
    model: str

    @cached_property
    def _model(self) -> TaskModel:
        return TaskModel(self.chat, self.prompts)

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        """Return an answer from one context."""
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
        """Scored points, and by DRIFT's prompts further questions; numbered sentences have lazy search's prompt."""
        if not evidence.text.strip():
            return Mapped()
        values: dict[str, object] = {"context": evidence.text, "question": question, "language": options.language}
        if not follow_ups:
            task = tasks.LAZY_MAP if any(passage.sentences for passage in evidence.passages) else tasks.GLOBAL_MAP
            answer, usage = await ask_model(self._model, task, max_words=options.max_map_words, **values)
            return Mapped(_points(answer.points), (), usage)
        values["follow_ups"] = follow_ups
        if main_question is None:
            step, usage = await ask_model(self._model, tasks.DRIFT_PRIMER, **values)
        else:
            step, usage = await ask_model(self._model, tasks.DRIFT_LOCAL, main_question=main_question, **values)
        return Mapped(_points(step.points), _follow_ups(step.follow_ups, follow_ups), usage)

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
        """Return a paragraph like `example`, a report, that might answer `question`."""
        return await self._reply(self._model.request(tasks.HYPOTHESIS, example=example, question=question), question)

    async def aquestions(
        self, history: Sequence[str], evidence: Evidence, count: int = 5, options: AnswerOptions = PLAIN
    ) -> tuple[tuple[str, ...], Usage]:
        """Up to `count` questions that `evidence` answers and that are not in `history`."""
        if not evidence.text.strip():
            return (), Usage()
        before = "\n".join(f"- {question}" for question in history) or None
        values = {"context": evidence.text, "count": count, "history": before, "language": options.language}
        answer, usage = await ask_model(self._model, tasks.QUESTIONS, **values)
        old = {question.casefold().strip() for question in history}
        new = {q.casefold().strip(): q for q in reversed(answer.questions) if q}
        return tuple(q for key, q in reversed(new.items()) if key not in old)[:count], usage

    async def arate(self, question: str, reports: Sequence[str]) -> tuple[list[float | None], Usage]:
        """Return the relevance of each report for `question`, from 0 to 5; None if the answer leaves it out."""
        started = time.perf_counter()
        ratings, usage = await ratings_of(self._model, question, reports)
        return ratings, replace(usage, seconds=time.perf_counter() - started)

    async def arewrite(
        self, question: str, concepts: Sequence[str], count: int, options: AnswerOptions = PLAIN
    ) -> RewrittenQuestion:
        """Return the question without the conversation, and up to `count` questions that together cover it."""
        lines = "\n".join(f"- {concept}" for concept in concepts)
        # Fenced: an earlier answer may quote instructions from a document.
        before = fence(options.history, "conversation") if options.history else None
        values = {"concepts": lines, "question": question, "count": count, "history": before}
        said, usage = await ask_model(self._model, tasks.SUB_QUESTIONS, **values)
        return RewrittenQuestion(
            said.question or question, tuple(dict.fromkeys(filter(None, said.questions)))[:count], usage
        )

    async def atest(
        self, question: str, passages: Sequence[Passage], rarity: Mapping[str, float] | None = None
    ) -> Relevance:
        """Return the passages that help to answer `question`, with their sentences that do."""
        return await relevance_of(self._model, question, passages)

    async def aplan(self, question: str) -> Planned:
        """Return the steps of the question."""
        values = {"question": question, "max_steps": MAX_STEPS}
        steps, usage = await ask_model(self._model, tasks.PLAN_QUESTION, **values)
        return Planned(steps.plan(question, self.model), usage)

    async def afind(self, question: str, evidence: Evidence, main_question: str) -> StepFindings:
        """Return the values that answer a step, each with a statement that cites the evidence."""
        if not evidence.text.strip():
            return StepFindings()
        values = {"context": evidence.text, "question": question, "main_question": main_question}
        answer, usage = await ask_model(self._model, tasks.ANSWER_STEP, **values)
        return StepFindings(tuple(Finding(each.value, each.statement) for each in answer.values), usage)

    async def achoose(self, question: str, kinds: Mapping[str, str]) -> Choice:
        """Return the kind of the question, one of `kinds`."""
        lines = "\n".join(f"- {kind}: {description}" for kind, description in kinds.items())
        task = replace(tasks.QUESTION_KIND, form=tasks.question_kind_of(tuple(kinds)))
        values = {"question": question, "kinds": lines}
        said, usage = await ask_model(self._model, task, **values)
        kind = said.kind.strip().casefold().strip("\"'.")
        return Choice(kind if kind in kinds else "", said.reason, usage)

    def _respond_request(self, question: str, evidence: Evidence, options: AnswerOptions) -> ChatRequest | None:
        """Return the request for an answer: basic search's for evidence of text units alone, else local search's."""
        if not evidence.text.strip():
            return None
        basic = evidence.passages and all(passage.table == "Sources" for passage in evidence.passages)
        task = tasks.BASIC_SEARCH if basic else tasks.LOCAL_SEARCH
        return self._model.request(task, context=evidence.text, question=question, **_form(options))

    def _reduce_request(
        self, question: str, points: Sequence[Point], options: AnswerOptions, drift: bool
    ) -> ChatRequest | None:
        """Return the request for one answer from the points, in the given order."""
        if not points:
            return None
        notes, form = "\n\n".join(map(as_note, points)), _form(options)
        values = {"points": notes, "question": question, "max_words": options.max_reduce_words, **form}
        if drift:
            return self._model.request(tasks.DRIFT_REDUCE, **values)
        knows = options.general_knowledge
        knowledge = prompt_text(self._model.request(tasks.GLOBAL_KNOWLEDGE).messages) if knows else None
        return self._model.request(tasks.GLOBAL_REDUCE, general_knowledge=knowledge, **values)

    async def _reply(self, request: ChatRequest | None, otherwise: str = NO_ANSWER) -> Reply:
        """Return the answer in one piece; `otherwise` without a request, or if it is empty."""
        if request is None:
            return Reply(otherwise)
        completion = await self.chat.complete(request)
        return Reply(completion.text.strip() or otherwise, usage_of(completion))

    async def _stream(self, request: ChatRequest | None) -> Pieces:
        """`_reply` in pieces."""
        if request is None:
            yield NO_ANSWER
            yield Reply(NO_ANSWER)
            return
        async for piece in self.chat.stream(request):
            if isinstance(piece, str):
                yield piece
            else:
                yield Reply(piece.text.strip() or NO_ANSWER, usage_of(piece))


def _form(options: AnswerOptions) -> dict[str, Any]:
    return {
        "response_type": options.response_type,
        "no_answer": NO_ANSWER,
        "language": options.language,
    }


def _points(scored: Sequence[tasks.ScoredPoint]) -> tuple[Point, ...]:
    """Points with text and a positive score, best first."""
    points = [Point(p.description, MIDDLE_SCORE if p.score is None else p.score) for p in scored if p.description]
    return tuple(sorted((p for p in points if p.score > 0), key=lambda p: (-p.score, p.text)))


def _follow_ups(scored: Sequence[tasks.ScoredQuestion], limit: int) -> tuple[FollowUp, ...]:
    """Return the first questions of each wording, best first."""
    scores = {q.question: MIDDLE_SCORE if q.score is None else q.score for q in reversed(scored) if q.question}
    follow_ups = (FollowUp(question, score) for question, score in scores.items())
    return tuple(sorted(follow_ups, key=lambda f: (-f.score, f.question))[:limit])
