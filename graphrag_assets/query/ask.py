"""A question on its way: what the search methods read from, ask their models with, and keep record of.

`GraphRAG.local` makes a `QuestionTask` (question_task.py), which opens the publication, makes the `Ask` and takes the
steps of the method, such as `local.answer`; these end in `respond` or `reduce` (respond.py).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import numpy as np

from graphrag_assets.contracts.answering import AnswerOptions
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.embedded import in_conversation
from graphrag_assets.query.context import Context
from graphrag_assets.query.history import ConversationHistory
from graphrag_assets.query.options import Failure, QuestionOptions
from graphrag_assets.query.query_models import Models
from graphrag_assets.query.question import MAX_QUESTION_CHARACTERS, Question
from graphrag_assets.query.scope import Scope
from graphrag_assets.runtime.tracing import span
from graphrag_assets.store.publication_reader import Reader

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
OptionsOf = TypeVar("OptionsOf", bound=QuestionOptions)


class WithUsage(Protocol):
    """A result of a model with what it used."""

    @property
    def usage(self) -> Usage:
        """What it used."""


ModelResult = TypeVar("ModelResult", bound=WithUsage)


@dataclass
class Trace:
    """What a question has taken so far.

    Attributes:
        usage: by category.
        errors: calls that failed while others succeeded.
        unresolved: references to rows that were not given to the answerer.
        notes: what was done, for the message of a timeout.
        last_error: why the last model that was waited for had not answered, if it failed.
    """

    usage: dict[str, Usage] = field(default_factory=lambda: {"build_context": Usage()})
    errors: list[Failure] = field(default_factory=list)
    unresolved: dict[str, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    last_error: BaseException | None = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Seconds since the question was asked."""
        return time.perf_counter() - self.started

    def add(self, category: str, usage: Usage) -> None:
        """Add what a part of the search used."""
        self.usage[category] = self.usage.get(category, Usage()) + usage


@dataclass(eq=False)
class Ask(Generic[OptionsOf]):
    """One question to one publication.

    SQL runs in threads, one statement after another, so that the event loop stays free; calls to a model are awaited.

    Attributes:
        method: the name of a search method, ask, plan or retrieve.
        text: the question as it was asked.
        scope: the rows that the filter allows.
        on_piece: takes the answer in pieces; None: it is requested from the model in one.
        question: what retrieval looks for.
    """

    method: str
    text: str
    options: OptionsOf
    reader: Reader
    scope: Scope
    models: Models
    trace: Trace
    on_piece: Callable[[str], None] | None = None
    question: Question = field(init=False)

    def __post_init__(self) -> None:
        self.question = Question(self.text)

    @property
    def form(self) -> AnswerOptions:
        """The form of the answer."""
        names = (f.name for f in fields(AnswerOptions) if f.name != "history" and hasattr(self.options, f.name))
        values = {name: getattr(self.options, name) for name in names}
        return AnswerOptions(**values, by_meaning=self.reader.embedding is not None)

    async def in_thread(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Return the result of SQL, from a thread; its seconds count as `build_context`."""
        started = time.perf_counter()
        try:
            with span("build_context"):
                return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            self.trace.add("build_context", Usage(seconds=time.perf_counter() - started))

    @contextmanager
    def calling(self, category: str) -> Iterator[Callable[[Usage], None]]:
        """Yield a call to a model; yields the function that adds what it used, and its seconds, to the category.

        If the search ends meanwhile, the trace keeps the failure that the call was repeated for.
        """
        started = time.perf_counter()

        def add(usage: Usage) -> None:
            usage = replace(usage, seconds=time.perf_counter() - started)
            self.trace.add(category, usage)
            self.options.callbacks.on_call(category, usage)

        try:
            with span(category):
                yield add
        except asyncio.CancelledError as error:
            self.trace.last_error = error.__cause__ or self.trace.last_error
            raise

    async def counted(self, category: str, call: Awaitable[ModelResult]) -> ModelResult:
        """Return the result of a call; see `calling`."""
        with self.calling(category) as add:
            result = await call
            add(result.usage)
        return result

    async def optional(self, category: str, lost: str, call: Awaitable[ModelResult]) -> ModelResult | None:
        """Return the result of a call; the search continues without one that fails, and without what is `lost` then."""
        try:
            return await self.counted(category, call)
        except Exception as error:
            self.add_error(Failure(category, lost, str(error)))
            return None

    async def gather(
        self, category: str, calls: Sequence[tuple[str, Coroutine[Any, Any, Result]]], all_may_fail: bool = False
    ) -> list[Result | Exception]:
        """Return the results of concurrent calls, in their order; a failed call gives its error, which is recorded.

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
        errors = {
            lost: result for (lost, _), result in zip(calls, results, strict=True) if isinstance(result, Exception)
        }
        for lost, error in errors.items():
            self.add_error(Failure(category, lost, str(error)))
        if errors and not all_may_fail and all(isinstance(result, Exception) for result in results):
            raise next(iter(errors.values()))
        return results

    async def embed(self, *questions: Question) -> None:
        """Embed the questions, all with one request, if the index was embedded by a model."""
        if self.reader.embedding is None:
            return
        model, _ = self.reader.embedding
        with self.calling("build_context") as add:
            vectors, usage = await self.models.embed(model, [one.vector_text or one.text for one in questions])
            add(usage)
        for question, vector in zip(questions, vectors, strict=True):
            question.vector = np.asarray(vector)

    def add_error(self, failure: Failure) -> None:
        """Record a call that failed while the search goes on."""
        self.trace.errors.append(failure)
        self.options.callbacks.on_error(failure)

    def add_context(self, context: Context) -> Context:
        """Return the context with the question and the seconds of this search; it is recorded."""
        context = replace(context, question=self.text, seconds=self.trace.seconds)
        self.trace.notes.append(f"a context of {sum(bool(one.passages) for one in context.sections)} sections")
        return context

    def show(self, text: str) -> None:
        """Show a part of the answer, if it is requested in pieces."""
        if self.on_piece:
            self.on_piece(text)


async def rewrite_question(ask: Ask[Any]) -> None:
    """Make a question understood without its conversation, by one request; nothing else reads the conversation.

    Where that leaves the question as it is, the earlier questions are searched for, too.
    """
    history = ConversationHistory.of(ask.options.history).newest(ask.options.conversation_history_max_turns)
    if not history.turns:
        return
    form, lost = replace(ask.form, history=history.text), "the question without its conversation"
    rewritten = await ask.optional("rewrite", lost, ask.models.answerer.arewrite(ask.text, (), 0, form))
    text = rewritten.question if rewritten else await asyncio.to_thread(in_conversation, ask.text, history.text)
    searched = [text] if text != ask.text else [text, *reversed(history.questions)]
    ask.text, ask.question = text, Question("\n".join(searched)[:MAX_QUESTION_CHARACTERS])
