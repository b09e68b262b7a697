"""Runs a question on the models' event loop, for callers in any thread or loop, at once or in pieces of text."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from graphrag_assets.errors import QueryError, QueryTimeout
from graphrag_assets.llm.event_loop import is_current, submit
from graphrag_assets.query.ask import Ask, Trace, rewrite_question
from graphrag_assets.query.citations import Citation, given_by, references, resolve
from graphrag_assets.query.options import Failure, QuestionOptions
from graphrag_assets.query.query_models import Models
from graphrag_assets.query.results import Answer
from graphrag_assets.query.scope import scope_of
from graphrag_assets.runtime.interruption import Cancellation
from graphrag_assets.runtime.tracing import span
from graphrag_assets.store.publication_reader import CurrentPublication

Result = TypeVar("Result")


@dataclass(eq=False)
class QuestionTask(Generic[Result]):
    """A question from its start to its end.

    Attributes:
        steps: what the method does, such as `local.answer`.
        running: the tasks in progress of the `GraphRAG`.
        on_piece: see `Ask`.
        ask: the question once the publication is open.
        task: the steps once they have begun.
        end_reason: why the `GraphRAG` ended the task, for the caller, who waits for the answer.
    """

    method: str
    steps: Callable[[Ask[Any]], Awaitable[Result]]
    text: str
    options: QuestionOptions
    publications: CurrentPublication
    models: Models
    running: "set[QuestionTask[Any]]"
    on_piece: Callable[[str], None] | None = None
    ask: Ask[Any] | None = None
    task: asyncio.Task[Result] | None = None
    end_reason: str = ""

    async def run(self) -> Result:
        """Return the result of the steps, within the timeout.

        Raises:
            QueryError: the timeout is over, an option cannot be met, or the `GraphRAG` was closed.
            ModelError: all calls of a kind failed.
        """
        self.task = asyncio.current_task()
        self.running.add(self)
        cancellation, trace = Cancellation(), Trace()
        cancellation.hold()
        limit = asyncio.timeout(self.options.timeout)
        try:
            with span(f"search {self.method}", {"graphrag.method": self.method}) as annotate:
                async with limit:
                    self.ask = ask = await asyncio.to_thread(self._open, trace)
                    annotate({"graphrag.publication": ask.reader.publication})
                    for line in ask.scope.missing:
                        ask.add_error(Failure("filter", "a name in the filter", line))
                    await rewrite_question(ask)
                    result = await self.steps(ask)
                annotate({"graphrag.cost_usd": sum(usage.cost_usd for usage in trace.usage.values())})
            return result
        except BaseException as error:
            cancellation.cancel()  # what runs in threads would go on
            if isinstance(error, TimeoutError) and limit.expired():
                raise self._timeout_error(trace) from trace.last_error
            if isinstance(error, asyncio.CancelledError) and self.end_reason:
                raise QueryError(self.end_reason) from None
            raise
        finally:
            self.running.discard(self)

    def _open(self, trace: Trace) -> Ask[Any]:
        reader = self.publications.reader()
        scope = scope_of(reader, self.options.combined_filter, self.options.rights)
        return Ask(self.method, self.text, self.options, reader, scope, self.models, trace, self.on_piece)

    def _timeout_error(self, trace: Trace) -> QueryTimeout:
        method = self.ask.method if self.ask else self.method
        calls = sum(usage.calls for usage in trace.usage.values())
        failed = [error.error for error in trace.errors] + ([str(trace.last_error)] if trace.last_error else [])
        return QueryTimeout(
            f"The {method} search exceeded its timeout of {self.options.timeout:g} seconds. "
            f"Completed: {'; '.join(trace.notes) or 'nothing'}; {calls} model calls. Raise the timeout, or reduce "
            "max_context_tokens." + (f" The last call that failed: {failed[-1]}" if failed else "")
        )

    async def end(self, reason: str = "") -> None:
        """Cancel the steps; returns when they have ended. Requests already sent are completed for the ledger."""
        self.end_reason = reason
        if self.task is not None and not self.task.done():
            if not self.task.cancelling():
                self.task.cancel()
            await asyncio.wait([self.task])

    def wait(self) -> Result:
        """Return the result, for synchronous callers. If the caller is interrupted, nothing goes on."""
        refuse_inside_a_search()
        try:
            return submit(self.run()).result()
        except BaseException:
            submit(self.end()).result()
            raise

    async def result(self) -> Result:
        """Return the result, for asynchronous callers in any event loop. If the caller is canceled, nothing goes on."""
        try:
            return await asyncio.wrap_future(submit(self.run()))
        except BaseException:
            # Shielded: the search ends within moments, even if the caller is canceled again.
            await asyncio.shield(asyncio.wrap_future(submit(self.end())))
            raise


def refuse_inside_a_search() -> None:
    """Raise QueryError on the models' loop: an answerer that asks a question itself must not wait there."""
    if is_current():
        raise QueryError("A search inside a search would deadlock: use the asynchronous method, such as `alocal`.")


class AnswerStream:
    """An answer in pieces of text; after the last piece, `result` is the complete answer.

    Synchronous callers read it with `for`, asynchronous ones, in any event loop, with `async for`. The search starts
    when the first piece is requested. `close` and `aclose`, or leaving a `with` block, end it early.
    """

    def __init__(self, question: QuestionTask[Answer]) -> None:
        self._question = question
        self._pieces = self._read()
        self._is_closed = False

    async def _read(self) -> AsyncGenerator[str, None]:
        """Yield the pieces, on the models' loop; then the error, if there is one. A search that nobody reads ends.

        asyncio closes the generator when it is no longer referenced.
        """
        question, pieces = self._question, asyncio.Queue[str | None]()
        question.on_piece = pieces.put_nowait
        question.task = task = asyncio.create_task(question.run())
        task.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            task.result()
        finally:
            await question.end()

    @property
    def result(self) -> Answer:
        """The complete answer.

        Raises:
            QueryError: the stream was not read to its end, or was closed.
        """
        task = self._question.task
        if self._is_closed and (task is None or task.cancelled()):
            raise QueryError("The search was ended before its answer was complete.")
        if task is None or not task.done():
            raise QueryError("The answer is not complete yet: read the stream to its end.")
        return task.result()

    def citations_in(self, text: str) -> list[Citation]:
        """Return the passages that a part of the answer cites, which must have begun."""
        ask = self._question.ask
        return resolve(ask.reader, text, given_by(references(text)), ask.scope)[0] if ask else []

    async def _next(self) -> str | None:
        """Return the next piece; None after the last."""
        return None if self._is_closed else await anext(self._pieces, None)

    async def _close(self) -> None:
        self._is_closed = True
        await self._question.end()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        refuse_inside_a_search()
        try:
            piece = submit(self._next()).result()
        except BaseException:  # also if the caller is interrupted
            self.close()
            raise
        if piece is None:
            raise StopIteration
        return piece

    def close(self) -> None:
        """End the search; returns when no part of it is running."""
        submit(self._close()).result()

    def __enter__(self) -> "AnswerStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        try:
            piece = await asyncio.wrap_future(submit(self._next()))
        except BaseException:
            await self.aclose()
            raise
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """`close` for asynchronous callers."""
        # Shielded: the search ends within moments, even if the caller is canceled again.
        await asyncio.shield(asyncio.wrap_future(submit(self._close())))

    async def __aenter__(self) -> "AnswerStream":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
