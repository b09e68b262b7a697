"""Answers to questions by a chat model: an `Answerer` like the embedded default's, with the query templates."""

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from graphrag_assets.contracts.answering import (
    NO_ANSWER,
    PLAIN,
    Answerer,
    AnswerOptions,
    Choice,
    Evidence,
    Finding,
    FollowUp,
    Found,
    Linked,
    Mapped,
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
from graphrag_assets.contracts.plans import MAX_STEPS
from graphrag_assets.contracts.usage import UsageMeter
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts, fence, prompt_text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Origin, usage_of
from graphrag_assets.llm.tasks.question_forms import (
    DriftAnswer,
    MapAnswer,
    PlannedSteps,
    QuestionLinks,
    Questions,
    ScoredPoint,
    ScoredQuestion,
    StepValues,
    SubQuestions,
    question_kind_of,
)
from graphrag_assets.llm.tasks.rate_reports import ratings_of
from graphrag_assets.llm.tasks.relevance import relevance_of

MIDDLE_SCORE = 50.0  # of a point or question that was not scored
_MAX_LINKS = 10  # of each list


@dataclass(frozen=True)
class ChatAnswerer(Answerer):
    """An `Answerer` by a chat model. Errors are raised: an empty answer would hide them.

    Without evidence nothing is sent.
    """

    chat: ChatModel
    prompts: Prompts
    model: str
    origin: Origin = NOWHERE

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
        completion = await self.chat.complete(self._map_request(question, evidence, follow_ups, main_question, options))
        answer = completion.parsed
        raised = _follow_ups(answer.follow_ups, follow_ups) if isinstance(answer, DriftAnswer) else ()
        return Mapped(_points(answer.points), raised, usage_of(completion))

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
        completion = await self.chat.complete(self._request("hypothetical_answer", example=example, question=question))
        return Reply(completion.text.strip() or question, usage_of(completion))

    async def aquestions(
        self, history: Sequence[str], evidence: Evidence, count: int = 5, options: AnswerOptions = PLAIN
    ) -> tuple[tuple[str, ...], Usage]:
        """Up to `count` questions that `evidence` answers and that are not in `history`."""
        if not evidence.text.strip():
            return (), Usage()
        found, usage = await self._ask(
            "question_generation",
            Questions,
            context=evidence.text,
            count=count,
            history="\n".join(f"- {question}" for question in history) or None,
            language=options.language,
        )
        asked = {question.casefold().strip() for question in history}
        new = {q.casefold().strip(): q for q in reversed(found.questions) if q}
        return tuple(q for key, q in reversed(new.items()) if key not in asked)[:count], usage

    async def arate(self, question: str, reports: Sequence[str], repeat: int = 0) -> tuple[list[float | None], Usage]:
        """The relevance of each report for `question`, from 0 to 5; None if the answer leaves it out."""
        started = time.perf_counter()
        ratings, usage = await ratings_of(self.chat, self.prompts, question, reports, repeat, self.origin)
        return ratings, replace(usage, seconds=time.perf_counter() - started)

    async def alink(self, question: str, options: AnswerOptions = PLAIN) -> Linked:
        """The names that the question means, and keywords for particulars and for themes.

        After the keyword extraction of LightRAG (Guo et al. 2024, arXiv 2410.05779).
        """
        links, usage = await self._ask("link_question", QuestionLinks, question=question, history=_said_before(options))
        return Linked(_distinct(links.names), _distinct(links.low_level), _distinct(links.high_level), usage)

    async def arewrite(
        self, question: str, concepts: Sequence[str], count: int, options: AnswerOptions = PLAIN
    ) -> Rewritten:
        """The question without the conversation, and up to `count` questions that together cover it."""
        said, usage = await self._ask(
            "sub_questions",
            SubQuestions,
            concepts="\n".join(f"- {concept}" for concept in concepts),
            question=question,
            count=count,
            history=_said_before(options),
        )
        return Rewritten(said.question or question, tuple(dict.fromkeys(filter(None, said.questions)))[:count], usage)

    async def atest(
        self, question: str, passages: Sequence[Passage], rarity: Mapping[str, float] | None = None
    ) -> Relevance:
        """The passages that help to answer `question`, with their sentences that do."""
        return await relevance_of(self.chat, self.prompts, question, passages, self.origin)

    async def aplan(self, question: str, options: AnswerOptions = PLAIN) -> Planned:
        """The steps of the question, understood in the conversation."""
        steps, usage = await self._ask(
            "plan_question", PlannedSteps, question=question, max_steps=MAX_STEPS, history=_said_before(options)
        )
        return Planned(steps.plan(question, self.model), usage)

    async def afind(self, question: str, evidence: Evidence, main_question: str) -> Found:
        """The values that answer a step, each with a statement that cites the evidence."""
        if not evidence.text.strip():
            return Found()
        given = {"context": evidence.text, "question": question, "main_question": main_question}
        found, usage = await self._ask("answer_step", StepValues, **given)
        return Found(tuple(Finding(each.value, each.statement) for each in found.values), usage)

    async def achoose(self, question: str, kinds: Mapping[str, str], options: AnswerOptions = PLAIN) -> Choice:
        """The kind of the question, one of `kinds`."""
        listed = "\n".join(f"- {kind}: {description}" for kind, description in kinds.items())
        given = {"question": question, "kinds": listed, "history": _said_before(options)}
        said, usage = await self._ask("question_kind", question_kind_of(tuple(kinds)), **given)
        kind = said.kind.strip().casefold().strip("\"'.")
        return Choice(kind if kind in kinds else "", said.reason, usage)

    def _respond_request(self, question: str, evidence: Evidence, options: AnswerOptions) -> ChatRequest | None:
        """The request for an answer: basic search's for evidence of text units alone, else local search's."""
        if not evidence.text.strip():
            return None
        basic = all(passage.table == "Sources" for passage in evidence.passages)
        task = "basic_search" if basic and evidence.passages else "local_search"
        return self._request(task, context=evidence.text, question=question, **_form(options))

    def _map_request(
        self, question: str, evidence: Evidence, follow_ups: int, main_question: str | None, options: AnswerOptions
    ) -> ChatRequest:
        """The request for points: lazy search's for numbered sentences, DRIFT's (its primer or a step) for follow-up
        questions, else global search's."""
        given: dict[str, object] = {"context": evidence.text, "question": question, "language": options.language}
        history = _said_before(options)
        if not follow_ups:
            task = "lazy_map" if any(passage.sentences for passage in evidence.passages) else "global_map"
            return self._request(task, MapAnswer, max_words=options.max_map_words, history=history, **given)
        if main_question is None:
            return self._request("drift_primer", DriftAnswer, follow_ups=follow_ups, history=history, **given)
        return self._request("drift_local", DriftAnswer, follow_ups=follow_ups, main_question=main_question, **given)

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
            return self._request("drift_reduce", **given)
        knowledge = prompt_text(self.prompts.render("global_knowledge")) if options.general_knowledge else None
        return self._request("global_reduce", general_knowledge=knowledge, **given)

    def _request(self, task: str, form: type[BaseModel] | None = None, **values: object) -> ChatRequest:
        return self.origin.request(task, self.prompts.render(task, **values), form)

    async def _ask(self, task: str, form: type[BaseModel], **values: object) -> tuple[Any, Usage]:
        """The answer to a task, an instance of `form`, and what it cost."""
        completion = await self.chat.complete(self._request(task, form, **values))
        return completion.parsed, usage_of(completion)

    async def _reply(self, request: ChatRequest | None) -> Reply:
        """The answer in one piece; without a request the fixed answer."""
        if request is None:
            return Reply(NO_ANSWER)
        completion = await self.chat.complete(request)
        return Reply(completion.text.strip() or NO_ANSWER, usage_of(completion))

    async def _stream(self, request: ChatRequest | None) -> Pieces:
        """`_reply` in pieces."""
        if request is None:
            yield NO_ANSWER
            yield Reply(NO_ANSWER)
            return
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
        usage = Usage(used.calls, used.prompt_tokens, used.completion_tokens, used.cost_usd)
        stored = await metered.known(request)  # without thoughts that were recognized too late
        yield Reply((stored.text if stored else "".join(text)).strip() or NO_ANSWER, usage)


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


def _distinct(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (" ".join(text.split()) for text in texts))))[:_MAX_LINKS]
