"""Runs a question on the models' event loop, for callers in any thread or loop.

The loop is the one that all calls to models share (`llm/event_loop.py`), because connections and rate limits live in
it. Asynchronous callers use it as well: a search never blocks their own loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from graphrag_assets.errors import QueryError, QueryTimeout
from graphrag_assets.llm.event_loop import is_current, submit
from graphrag_assets.query.ask import Ask, Models, Trace
from graphrag_assets.query.filters import scope_of
from graphrag_assets.query.question_options import QuestionOptions
from graphrag_assets.query.results import Failure
from graphrag_assets.runtime.cancellation import Cancellation
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
        """The result of the steps, within the timeout.

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
                    result = await self.steps(ask)
                annotate({"graphrag.cost_usd": sum(usage.cost for usage in trace.usage.values())})
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
            "max_context_tokens." + (f" The last call that failed: {failed[-1]}" if failed else ""),
            trace.notes,
            failed,
            trace.last_error,
        )

    async def end(self, reason: str = "") -> None:
        """Cancel the steps; returns when they have ended. Requests already sent are completed for the ledger."""
        self.end_reason = reason
        if self.task is not None and not self.task.done():
            if not self.task.cancelling():
                self.task.cancel()
            await asyncio.wait([self.task])

    def wait(self) -> Result:
        """The result, for synchronous callers. If the caller is interrupted, nothing goes on."""
        refuse_inside_a_search()
        try:
            return submit(self.run()).result()
        except BaseException:
            submit(self.end()).result()
            raise

    async def result(self) -> Result:
        """The result, for asynchronous callers in any event loop. If the caller is canceled, nothing goes on."""
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
