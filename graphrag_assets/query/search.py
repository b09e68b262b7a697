"""A search in progress: the question, its options, and its context and usage so far.

The path of a question: `Method.__call__` (method.py) makes a `Search`; `AnswerStream.wait` reads its `__next__`
(streaming.py), which starts `Search.run` on the models' event loop; that opens the publication and calls the steps,
such as `local.answer`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar

import numpy as np
import polars as pl

from graphrag_assets.answering import (
    NO_ANSWER,
    Answerer,
    AnswerOptions,
    Evidence,
    Mapped,
    Pieces,
    Point,
    Reply,
    Usage,
    best_points,
)
from graphrag_assets.embedded import EmbeddedAnswerer
from graphrag_assets.errors import QueryError
from graphrag_assets.llm.model_errors import QuestionBudgetExceeded
from graphrag_assets.llm.question_budget import limit_question, spending
from graphrag_assets.query import query_models
from graphrag_assets.query.citations import Checked, Given, given_by, references
from graphrag_assets.query.context import Context, Section
from graphrag_assets.query.filters import EVERYTHING, Scope, scope_of
from graphrag_assets.query.finish import finished
from graphrag_assets.query.history import ConversationHistory
from graphrag_assets.query.question_options import CommonOptions, QuestionOptions
from graphrag_assets.query.results import Action, Answer, Chosen, Failure
from graphrag_assets.query.retrieval import Question, ranks_by_meaning
from graphrag_assets.store.publication_reader import Reader

if TYPE_CHECKING:
    from graphrag_assets.query.graphrag import GraphRAG

Event = tuple[str, Any]
"""Name and value of an event."""
DONE, FAILED = "done", "failed"

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class Used(Protocol):
    """A result of a model with what it used."""

    @property
    def usage(self) -> Usage:
        """What it used."""


OptionsOf = TypeVar("OptionsOf", bound=QuestionOptions)
Made = TypeVar("Made", bound=Used)


@dataclass
class Search(Generic[OptionsOf]):
    """One question to one publication.

    SQL runs in threads, so that the event loop stays free; calls to a model are awaited.

    Attributes:
        rag: has the index and the models.
        method: local, global, drift, basic, lazy, planned, ask, plan or retrieve.
        steps: what `run` does once the publication is open, such as `local.answer`.
        text: the original question.
        streaming: whether the answer is requested from the model in pieces.
        answerer: writes the answer; rater: rates reports for it.
        events: names and values of the events of `Callbacks`; the last one is `DONE` or `FAILED`.
        earlier: the earlier questions of the conversation, the newest first.
        question: what retrieval looks for: the text and the earlier questions.
        scope: the rows that the filter allows.
        history: the turns that are part of the prompt.
        form: the form of the answer.
        usage: by category.
        errors: calls that failed while others succeeded.
        unresolved: references to rows that were not given to the answerer.
        tests: a lazy search's relevance tests, see `Answer.tests`.
        steps_taken: the steps of a planned search, see `Answer.steps`.
        progress_notes: what was done so far, for the message of a timeout.
        rankings: text units by question, best first, which searches for one question share.
    """

    rag: "GraphRAG"
    method: str
    steps: "Callable[[Search[Any]], Awaitable[Any]]"
    text: str
    options: OptionsOf
    streaming: bool = False
    answerer: Answerer = field(init=False)
    rater: Answerer = field(init=False)
    reader: Reader = field(init=False)
    scope: Scope = EVERYTHING
    history: Section | None = None
    form: AnswerOptions = field(default_factory=AnswerOptions)
    usage: dict[str, Usage] = field(default_factory=lambda: {"build_context": Usage()})
    errors: list[Failure] = field(default_factory=list)
    unresolved: dict[str, None] = field(default_factory=dict)
    progress_notes: list[str] = field(default_factory=list)
    choice: Chosen | None = None
    tests: pl.DataFrame | None = None
    rankings: dict[str, list[int]] = field(default_factory=dict)
    steps_taken: pl.DataFrame | None = None
    events: asyncio.Queue[Event] = field(default_factory=asyncio.Queue)
    task: asyncio.Task[None] | None = None
    started: float = 0.0

    def __post_init__(self) -> None:
        Question(self.text)  # refuses an empty question, even with a history
        self.answerer, self.rater = self.rag.answerer, self.rag.rater
        turns = ConversationHistory.of(self.options.history)
        earlier = turns.newest(self.options.conversation_history_max_turns, user_turns_only=True)
        self.earlier = [turn.content for turn in earlier]
        self.question = Question("\n".join([self.text, *self.earlier]))
        self.streaming = self.streaming or getattr(self.options.callbacks, "on_token", None) is not None

    async def run(self) -> None:
        """Take the steps, within the timeout. The last event is `DONE` with their result, or `FAILED` with the error.

        Errors are a QueryError if the timeout is over or an option cannot be met, and a ModelError if all calls of a
        kind failed.
        """
        self.task, self.started = asyncio.current_task(), time.perf_counter()
        if (max_usd := getattr(self.options, "max_usd", None)) is not None:
            limit_question(max_usd)
        limit = asyncio.timeout(self.options.timeout)
        try:
            async with limit:
                self.reader = await asyncio.to_thread(self.rag.index.reader)  # the newest publication
                await asyncio.to_thread(self.reader.check_version)
                await asyncio.to_thread(self.prepare)
                result = await self.steps(self)
            self.notify(DONE, result)
        except BaseException as error:  # the caller waits for the last event, whatever the error is
            timed_out = isinstance(error, TimeoutError) and limit.expired()
            self.notify(FAILED, self._timeout_error() if timed_out else error)
            if isinstance(error, asyncio.CancelledError):
                raise

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self.started

    @property
    def min_direct_score(self) -> float | None:
        """See `Answerer.min_direct_score`, which custom answerers may leave out."""
        return getattr(self.answerer, "min_direct_score", None)

    async def cancel(self) -> None:
        """Cancel `run`; returns when it has ended. Requests already sent are completed for the ledger."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait([self.task])

    def notify(self, name: str, value: Any) -> None:
        """Report an event."""
        self.events.put_nowait((name, value))

    def prepare(self) -> None:
        """Look up what the filter allows, select the turns of the conversation, and set the form of the answer."""
        self.scope = scope_of(self.reader, self.options.combined_filter)
        if isinstance(self.options, CommonOptions):
            self.history = ConversationHistory.of(self.options.history).section(
                self.options.conversation_history_max_turns,
                self.options.conversation_history_user_turns_only,
                self.options.max_context_tokens // 2,
            )
        given = {f.name: getattr(self.options, f.name) for f in fields(AnswerOptions) if hasattr(self.options, f.name)}
        given |= {"history": self.history.text if self.history else "", "by_meaning": ranks_by_meaning(self.reader)}
        self.form = AnswerOptions(**given)

    def _timeout_error(self) -> QueryError:
        done = "; ".join(self.progress_notes) or "nothing"
        calls = sum(usage.calls for usage in self.usage.values())
        return QueryError(
            f"The {self.method} search exceeded its timeout of {self.options.timeout:g} seconds. "
            f"Completed: {done}; {calls} model calls. Raise the timeout, or reduce max_context_tokens."
        )

    def room(self, max_context_tokens: int) -> int:
        """The token limit minus the tokens of the history."""
        return max(max_context_tokens - (self.history.tokens if self.history else 0), 1)

    @property
    def fitting(self) -> OptionsOf:
        """The options with the tokens that the history leaves."""
        options: Any = self.options
        fitting: OptionsOf = replace(options, max_context_tokens=self.room(options.max_context_tokens))
        return fitting

    async def optional(self, part: str, lost: str, call: Awaitable[Made]) -> Made | None:
        """The result of a call; the search continues without one that fails, and without what is `lost` then."""
        try:
            return await self.counted(part, call)
        except Exception as error:
            self.errors.append(Failure(part, lost, str(error)))
            return None

    async def counted(self, category: str, call: Awaitable[Made]) -> Made:
        """The result of a call; what it used, and its seconds, are added to the category."""
        started = time.perf_counter()
        found = await call
        self.add_usage(category, replace(found.usage, seconds=time.perf_counter() - started))
        return found

    def add_usage(self, category: str, usage: Usage) -> None:
        """Add what a part of the search used."""
        self.usage[category] = self.usage.get(category, Usage()) + usage

    async def in_thread(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """The result of SQL, from a thread; its seconds count as `build_context`."""
        started = time.perf_counter()
        try:
            return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            self.add_usage("build_context", Usage(seconds=time.perf_counter() - started))

    async def embed(self, *questions: Question) -> None:
        """Embed the questions, all with one request, if the index was embedded by a model."""
        if self.reader.embedding is None or not ranks_by_meaning(self.reader):
            return
        questions = (*questions, *(question.of_reports for question in questions if question.of_reports))
        model, _ = self.reader.embedding
        vectors, usage = await self.vectors_of(model, [question.embedded_text for question in questions])
        self.add_usage("build_context", usage)
        for question, vector in zip(questions, vectors, strict=True):
            question.remember(model, vector)

    async def vectors_of(self, model: str, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
        """The vectors of the texts by the model of the index, and their cost."""
        return await query_models.embed(model, texts)

    def add_context(self, found: Context) -> Context:
        """The context with the question and the history of this search; reported to `on_context`."""
        return self.add_step_context(replace(found, question=self.text, history=self.history))

    def add_step_context(self, context: Context) -> Context:
        """Report the context of a step to `on_context`."""
        context = replace(context, seconds=self.seconds)
        self.notify("on_context", context)
        read = sum(1 for section in context.sections if section.passages)
        self.progress_notes.append(f"a context of {read} sections")
        return context

    async def map(
        self,
        category: str,
        question: str,
        evidence: Evidence,
        follow_ups: int = 0,
        main_question: str | None = None,
        ranked: bool = True,
    ) -> Mapped:
        """The points that a part of the data yields; references to rows outside it are removed and recorded.

        `ranked`: the passages are in the order of their similarity to the question.
        """
        form = self.form if ranked else replace(self.form, by_meaning=False)
        call = self.answerer.amap(question, evidence, follow_ups, main_question, form)
        mapped = await self.counted(category, call)
        given, points = given_by(evidence.passages), []
        for point in mapped.points:
            text, lost = Checked.text(point.text, given, remove=True)
            self.unresolved |= dict.fromkeys(lost)
            points.append(Point(text, point.score))
        mapped = replace(mapped, points=tuple(points))
        self.notify("on_map", mapped)
        self.progress_notes.append(f"{len(points)} points from a part of the data")
        return mapped

    async def map_parts(self, parts: Sequence[Section], what: str, ranked: bool = True) -> list[Point]:
        """The points that parts of `what`, read concurrently, yield; see `map`. Raises as `gather` does."""
        calls = [
            (f"part {number} of {len(parts)} of {what}", self.map("map", self.text, part.evidence, ranked=ranked))
            for number, part in enumerate(parts, 1)
        ]
        mapped = await self.gather("map", calls)
        return [point for one in mapped if isinstance(one, Mapped) for point in one.points]

    async def gather(
        self, part: str, calls: Sequence[tuple[str, Coroutine[Any, Any, Result]]], all_may_fail: bool = False
    ) -> list[Result | Exception]:
        """The results of concurrent calls, in their order; a failed call gives its error, which is recorded.

        Args:
            calls: what is lost without the call, and the call.

        Raises:
            Exception: the first error, if all calls failed, none of them because of the question's budget, and
                `all_may_fail` is false.
        """

        async def attempt(call: Coroutine[Any, Any, Result]) -> Result | Exception:
            try:
                return await call
            except Exception as error:
                return error

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(attempt(call)) for _, call in calls]
        results = [task.result() for task in tasks]
        failed = [(what, r) for (what, _), r in zip(calls, results, strict=True) if isinstance(r, Exception)]
        self.errors += [Failure(part, what, str(error)) for what, error in failed]
        all_may_fail |= any(isinstance(error, QuestionBudgetExceeded) for _, error in failed)
        if failed and len(failed) == len(calls) and not all_may_fail:
            raise failed[0][1]
        return results

    async def respond(self, context: Context, ending: str = "") -> Answer:
        """One answer from one context; `ending` follows it, unless there is none, as a paragraph of its own."""
        given = given_by(context.evidence.passages)
        text = await self._generate(
            "response",
            given,
            lambda: self.answerer.arespond(self.text, context.evidence, self.form),
            lambda: self.answerer.stream_response(self.text, context.evidence, self.form),
        )
        text = self._ended(text, "" if text == NO_ANSWER else ending)
        return await self.answer(text, context.sections, given)

    async def reduce(
        self,
        points: Sequence[Point],
        max_tokens: int,
        sections: Sequence[Section],
        actions: Sequence[Action] = (),
        drift: bool = False,
        category: str = "reduce",
        ending: str = "",
    ) -> Answer:
        """One answer from the best points within `max_tokens`; only what these cite can be cited.

        `ending`: follows the answer as a paragraph of its own.
        """
        kept = await asyncio.to_thread(best_points, points, max_tokens)
        self.notify("on_reduce", kept)
        given = given_by(reference for point in kept for reference in references(point.text))
        text = await self._generate(
            category,
            given,
            lambda: self.answerer.areduce(self.text, kept, self.form, drift),
            lambda: self.answerer.stream_reduction(self.text, kept, self.form, drift),
        )
        return await self.answer(self._ended(text, ending), sections, given, actions)

    async def state(self, text: str, sections: Sequence[Section], given: Given, said: str | None = None) -> Answer:
        """The answer of this text, which nobody has to write; `said` are its statements, if it has other lines."""
        self._show(text)
        return await self.answer(text, sections, given, said=said)

    def _ended(self, text: str, ending: str) -> str:
        if not ending:
            return text
        self._show(f"\n\n{ending}")
        return f"{text}\n\n{ending}"

    def _show(self, text: str) -> None:
        if self.streaming:
            self.notify("on_token", text)

    async def _generate(
        self, category: str, given: Given, reply: Callable[[], Awaitable[Reply]], pieces: Callable[[], Pieces]
    ) -> str:
        """The text of an answer; by the embedded default if `max_usd` does not cover that of the model."""
        try:
            with spending(1.0):
                return await self._written(category, given, reply, pieces)
        except QuestionBudgetExceeded as error:
            self.errors.append(Failure(category, "the model's answer; sentences are quoted instead", str(error)))
            self.answerer = EmbeddedAnswerer()
            return await self._written(category, given, reply, pieces)

    async def _written(
        self, category: str, given: Given, reply: Callable[[], Awaitable[Reply]], pieces: Callable[[], Pieces]
    ) -> str:
        """The text of an answer with its references checked; in streaming mode, `on_token` gets it in pieces."""
        if not self.streaming:
            return self._checked(await self.counted(category, reply()), given)
        whole: Reply | None = None
        checked, shown, raw, started = Checked(given), list[str](), list[str](), time.perf_counter()
        async with aclosing(pieces()) as stream:
            async for piece in stream:
                if isinstance(piece, Reply):
                    self.add_usage(category, replace(piece.usage, seconds=time.perf_counter() - started))
                    whole = piece
                    continue
                raw.append(piece)
                if text := checked.feed(piece):
                    shown.append(text)
                    self.notify("on_token", text)
        if text := checked.end():
            shown.append(text)
            self.notify("on_token", text)
        if whole and whole.text != "".join(raw).strip():  # thoughts were shown before they were known to be
            return self._checked(whole, given)
        self.unresolved |= checked.unresolved
        return "".join(shown)

    def _checked(self, reply: Reply, given: Given) -> str:
        text, lost = Checked.text(reply.text, given)
        self.unresolved |= dict.fromkeys(lost)
        return text

    async def answer(
        self,
        text: str,
        sections: Sequence[Section],
        given: Given,
        actions: Sequence[Action] = (),
        said: str | None = None,
    ) -> Answer:
        """The result: the text, its citations with their documents, and the rows that were read."""
        return await asyncio.to_thread(finished, self, text, sections, given, actions, said)


@dataclass(frozen=True)
class SearchMethod(Generic[Arguments]):
    """A search method: its name, its options, how it builds a context and how it answers."""

    name: str
    options: Callable[Arguments, CommonOptions]
    context: Callable[[Search[Any]], Awaitable[Context]]
    answer: Callable[[Search[Any]], Awaitable[Answer]]
