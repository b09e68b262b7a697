"""A search in progress: the question, its options, and its context and usage so far.

The path of a question: `Method.__call__` (method.py) makes an `Ask`; `AnswerStream.wait` reads its `__next__`
(streaming.py), which starts `Ask.run` on the models' event loop; that opens the publication and calls the method,
such as `local.answer`, whose draft `Ask.finish` completes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

import numpy as np

from graphrag_assets.contracts.answering import (
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
from graphrag_assets.errors import QueryError, QueryTimeout
from graphrag_assets.query import query_models
from graphrag_assets.query.callbacks import Call
from graphrag_assets.query.citations import Checked, Given, given_by, references, resolve
from graphrag_assets.query.context import Context, Section, cited_frames
from graphrag_assets.query.filters import EVERYTHING, Scope, scope_of
from graphrag_assets.query.history import ConversationHistory
from graphrag_assets.query.question_options import CommonOptions, QuestionOptions
from graphrag_assets.query.results import Answer, Draft, Failure
from graphrag_assets.query.retrieval import MAX_QUESTION_CHARACTERS, Question
from graphrag_assets.runtime.cancellation import Cancellation
from graphrag_assets.runtime.tracing import span
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_reader import CurrentPublication, Reader

Embedder = Callable[[Sequence[str]], "np.ndarray | Sequence[Sequence[float]]"]
"""A function that embeds questions as the texts of the index are embedded: one vector of each."""
MethodName = Literal["local", "global", "drift", "basic", "lazy", "planned"]
Answering = MethodName | Literal["ask"]
"""The methods that answer: those with a context, and the one that selects one of them."""
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


@dataclass(frozen=True)
class Tools:
    """What the searches of one `GraphRAG` share: publications, models and methods.

    `running`: the searches in progress.
    """

    settings: Settings
    publications: CurrentPublication
    answerer: Answerer
    rater: Answerer
    methods: Mapping[str, "SearchMethod[...]"]
    embedder: Embedder | None = None
    running: "WeakSet[Ask[Any]]" = field(default_factory=WeakSet)

    async def embed(self, index_model: str, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
        """The vectors of questions, by the embedder that was given or else by the model of the settings."""
        if self.embedder is None:
            return await query_models.embed(self.settings, index_model, texts)
        return np.asarray(await asyncio.to_thread(self.embedder, texts), np.float32), Usage()


@dataclass(eq=False)
class Ask(Generic[OptionsOf]):
    """One question to one publication.

    SQL runs in threads, so that the event loop stays free; calls to a model are awaited.

    Attributes:
        tools: the index and the models.
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
        progress_notes: what was done so far, for the message of a timeout.
        last_error: why the last model that the search was waiting for had not answered, if it failed.
        cancellation: ends what runs in threads, which would go on after a timeout.
    """

    tools: Tools
    method: str
    steps: "Callable[[Ask[Any]], Awaitable[Any]]"
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
    last_error: BaseException | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)
    events: asyncio.Queue[Event] = field(default_factory=asyncio.Queue)
    task: asyncio.Task[None] | None = None
    end_reason: str = ""
    started: float = 0.0

    def __post_init__(self) -> None:
        Question(self.text)  # refuses an empty question, even with a history
        self.answerer, self.rater = self.tools.answerer, self.tools.rater
        turns = ConversationHistory.of(self.options.history)
        earlier = turns.newest(self.options.conversation_history_max_turns, user_turns_only=True)
        self.earlier = [turn.content for turn in earlier]
        self.question = Question("\n".join([self.text, *self.earlier])[:MAX_QUESTION_CHARACTERS])
        self.streaming = self.streaming or getattr(self.options.callbacks, "on_token", None) is not None

    async def run(self) -> None:
        """Take the steps, within the timeout. The last event is `DONE` with their result, or `FAILED` with the error.

        Errors are a QueryError if the timeout is over or an option cannot be met, and a ModelError if all calls of a
        kind failed.
        """
        self.task, self.started = asyncio.current_task(), time.perf_counter()
        self.cancellation.hold()
        self.tools.running.add(self)
        limit = asyncio.timeout(self.options.timeout)
        try:
            with span(f"search {self.method}", {"graphrag.method": self.method}) as annotate:
                async with limit:
                    await asyncio.to_thread(self._open)
                    annotate({"graphrag.publication": self.reader.publication})
                    result = await self.steps(self)
                annotate({"graphrag.cost_usd": sum(usage.cost for usage in self.usage.values())})
            self.notify(DONE, result)
        except BaseException as error:  # the caller waits for the last event, whatever the error is
            self.cancellation.cancel()
            timed_out = isinstance(error, TimeoutError) and limit.expired()
            ended = QueryError(self.end_reason) if self.end_reason else error
            self.notify(FAILED, self._timeout_error() if timed_out else ended)
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self.tools.running.discard(self)

    def _open(self) -> None:
        """Open the newest publication, and prepare the question for it."""
        self.reader = self.tools.publications.reader()
        self.prepare()

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self.started

    async def cancel(self, reason: str = "") -> None:
        """Cancel `run`; returns when it has ended. Requests already sent are completed for the ledger.

        `reason`: what the caller, who waits for the answer, is told.
        """
        self.end_reason = reason
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait([self.task])

    def notify(self, name: str, value: Any) -> None:
        """Report an event."""
        self.events.put_nowait((name, value))

    def prepare(self) -> None:
        """Look up what the filter allows, select the turns of the conversation, and set the form of the answer."""
        self.scope = scope_of(self.reader, self.options.combined_filter, self.options.rights)
        for line in self.scope.missing:
            if (failure := Failure("filter", "a name in the filter", line)) not in self.errors:
                self.add_error(failure)
        if isinstance(self.options, CommonOptions):
            self.history = ConversationHistory.of(self.options.history).section(
                self.options.conversation_history_max_turns,
                self.options.conversation_history_user_turns_only,
                self.options.max_context_tokens // 2,
            )
        given = {f.name: getattr(self.options, f.name) for f in fields(AnswerOptions) if hasattr(self.options, f.name)}
        given |= {"history": self.history.text if self.history else "", "by_meaning": self.reader.embedding is not None}
        self.form = AnswerOptions(**given)

    def _timeout_error(self) -> QueryTimeout:
        done = "; ".join(self.progress_notes) or "nothing"
        calls = sum(usage.calls for usage in self.usage.values())
        failed = [error.error for error in self.errors] + ([str(self.last_error)] if self.last_error else [])
        error = QueryTimeout(
            f"The {self.method} search exceeded its timeout of {self.options.timeout:g} seconds. "
            f"Completed: {done}; {calls} model calls. Raise the timeout, or reduce max_context_tokens."
            + (f" The last call that failed: {failed[-1]}" if failed else ""),
            self.progress_notes,
            failed,
            self.last_error,
        )
        error.__cause__ = self.last_error
        return error

    def tokens_left(self, max_context_tokens: int) -> int:
        """The token limit minus the tokens of the history."""
        return max(max_context_tokens - (self.history.tokens if self.history else 0), 1)

    @property
    def options_within_budget(self) -> OptionsOf:
        """The options with the tokens that the history leaves."""
        options: Any = self.options
        limit = self.tokens_left(options.max_context_tokens)
        within: OptionsOf = replace(options, max_context_tokens=limit)
        return within

    async def optional(self, part: str, lost: str, call: Awaitable[Made]) -> Made | None:
        """The result of a call; the search continues without one that fails, and without what is `lost` then."""
        try:
            return await self.counted(part, call)
        except Exception as error:
            self.add_error(Failure(part, lost, str(error)))
            return None

    async def counted(self, category: str, call: Awaitable[Made]) -> Made:
        """The result of a call; what it used, and its seconds, are added to the category."""
        started = time.perf_counter()
        with self._step(category):
            found = await call
        self._add_call(category, found.usage, started)
        return found

    def _add_call(self, category: str, usage: Usage, started: float) -> None:
        used = replace(usage, seconds=time.perf_counter() - started)
        self.add_usage(category, used)
        self.notify("on_call", Call(category, used))

    def add_error(self, failure: Failure) -> None:
        """Record a call that failed while the search goes on."""
        self.errors.append(failure)
        self.notify("on_error", failure)

    @contextmanager
    def _step(self, category: str) -> Iterator[None]:
        """A call to a model, as a span; if the search ends meanwhile, the failure that the call was repeated for."""
        self.notify("on_step", category)
        try:
            with span(category):
                yield
        except asyncio.CancelledError as error:
            self.last_error = error.__cause__ or self.last_error
            raise

    def add_usage(self, category: str, usage: Usage) -> None:
        """Add what a part of the search used."""
        self.usage[category] = self.usage.get(category, Usage()) + usage

    async def in_thread(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """The result of SQL, from a thread; its seconds count as `build_context`."""
        started = time.perf_counter()
        self.notify("on_step", "build_context")
        try:
            with span("build_context"):
                return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            self.add_usage("build_context", Usage(seconds=time.perf_counter() - started))

    async def embed(self, *questions: Question) -> None:
        """Embed the questions, all with one request, if the index was embedded by a model."""
        if self.reader.embedding is None:
            return
        questions = (*questions, *(question.of_reports for question in questions if question.of_reports))
        model, _ = self.reader.embedding
        started = time.perf_counter()
        with self._step("build_context"):
            vectors, usage = await self.tools.embed(model, [question.embedded_text for question in questions])
        self._add_call("build_context", usage, started)
        for question, vector in zip(questions, vectors, strict=True):
            question.remember(model, vector)

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
            Exception: the first error, if all calls failed and `all_may_fail` is false.
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
        for what, error in failed:
            self.add_error(Failure(part, what, str(error)))
        if failed and len(failed) == len(calls) and not all_may_fail:
            raise failed[0][1]
        return results

    async def respond(self, context: Context) -> Draft:
        """One answer from one context."""
        given = given_by(context.evidence.passages)
        text = await self._generate(
            "response",
            given,
            lambda: self.answerer.arespond(self.text, context.evidence, self.form),
            lambda: self.answerer.stream_response(self.text, context.evidence, self.form),
        )
        return Draft(text, context.sections, given)

    async def reduce(
        self,
        points: Sequence[Point],
        max_tokens: int,
        sections: Sequence[Section],
        drift: bool = False,
        category: str = "reduce",
    ) -> Draft:
        """One answer from the best points within `max_tokens`; only what these cite can be cited."""
        kept = await asyncio.to_thread(best_points, points, max_tokens)
        self.notify("on_reduce", kept)
        given = given_by(reference for point in kept for reference in references(point.text))
        text = await self._generate(
            category,
            given,
            lambda: self.answerer.areduce(self.text, kept, self.form, drift),
            lambda: self.answerer.stream_reduction(self.text, kept, self.form, drift),
        )
        return Draft(text, sections, given)

    def show(self, text: str) -> None:
        """Report a text that nobody has to write to `on_token`."""
        if self.streaming:
            self.notify("on_token", text)

    async def _generate(
        self, category: str, given: Given, reply: Callable[[], Awaitable[Reply]], pieces: Callable[[], Pieces]
    ) -> str:
        """The text of an answer with its references checked; in streaming mode, `on_token` gets it in pieces."""
        if not self.streaming:
            return self._checked(await self.counted(category, reply()), given)
        whole: Reply | None = None
        checked, shown, raw, started = Checked(given), list[str](), list[str](), time.perf_counter()
        with self._step(category):
            async with aclosing(pieces()) as stream:
                async for piece in stream:
                    if isinstance(piece, Reply):
                        self._add_call(category, piece.usage, started)
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

    async def finish(self, draft: Draft) -> Answer:
        """The answer of a draft: with its note, its citations in their documents, and the rows that were read."""
        if draft.note:
            self.show(f"\n\n{draft.note}")
        return await asyncio.to_thread(self._answer, draft)

    def _answer(self, draft: Draft) -> Answer:
        citations, lost = resolve(self.reader, draft.text, draft.given, self.scope)
        return Answer(
            method=self.method,
            question=self.text,
            answer=f"{draft.text}\n\n{draft.note}" if draft.note else draft.text,
            citations=citations,
            unresolved=list(self.unresolved | dict.fromkeys(lost)),
            context=cited_frames(draft.sections, self.history, given_by(references(draft.text))),
            usage=self.usage,
            seconds=self.seconds,
            model=self.answerer.model,
            publication=self.reader.publication,
            actions=list(draft.actions),
            errors=self.errors,
            choice=draft.choice,
            tests=draft.tests,
            steps=draft.steps,
        )


@dataclass(frozen=True)
class SearchMethod(Generic[Arguments]):
    """A search method: its name, its options, how it builds a context and how it answers."""

    name: str
    options: Callable[Arguments, CommonOptions]
    context: Callable[[Ask[Any]], Awaitable[Context]]
    answer: Callable[[Ask[Any]], Awaitable[Draft]]
