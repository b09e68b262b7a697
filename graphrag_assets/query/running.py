"""A search under way: it runs on the models' event loop; whoever waits for it gets its events, and can end it.

The loop is the process's one for model calls (`models/event_loop.py`), also for asynchronous callers: connections and
limits live there, and nothing a search does can hold up the caller's loop.
"""

import asyncio
import contextlib
import queue
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from graphrag_assets.errors import QueryError
from graphrag_assets.llm.event_loop import is_current, submit
from graphrag_assets.query.callbacks import tell

Result = TypeVar("Result")
Event = tuple[str, Any]
Emit = Callable[[str, Any], None]
Work = Callable[[Emit], Coroutine[Any, Any, Result]]
"""A search: it tells of its events by the function it is given."""

_DONE, _FAILED = "done", "failed"


class _Running(Generic[Result]):
    """Work begun on the models' loop. `put` takes its events, in that loop's thread; the last is done or failed."""

    def __init__(self, work: Work[Result], put: Callable[[Event], None]) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._future = submit(self._run(work, put))

    async def _run(self, work: Work[Result], put: Callable[[Event], None]) -> None:
        self._task = asyncio.current_task()
        try:
            put((_DONE, await work(lambda name, value: put((name, value)))))
        except BaseException as error:  # the caller is waiting for an end of whatever kind
            put((_FAILED, error))
            if isinstance(error, asyncio.CancelledError):
                raise

    def stop(self) -> "Future[None]":
        """Cancel the work; done when it has ended. Calls to a provider already sent are finished for the ledger."""
        return submit(self._stop())

    async def _stop(self) -> None:
        # Submitted after `_run`, so that has begun: both loops take their callbacks in order.
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])


class AnswerStream(Generic[Result]):
    """An answer in pieces of text; when they are through, `result` is the whole.

    The search begins with the first piece asked for. To end it early, `close` it, or leave its `with` block.
    """

    def __init__(self, work: Work[Result], callbacks: Any) -> None:
        self._work, self._callbacks = work, callbacks
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._running: _Running[Result] | None = None
        self._ended: Event | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._ended:
            raise StopIteration
        if self._running is None:
            if is_current():  # an answerer of one's own that asks in turn
                raise QueryError("A search inside of a search would wait for itself: use the asynchronous twin.")
            self._running = _Running(self._work, self._events.put)
        try:
            while True:
                name, value = self._events.get()
                if name in (_DONE, _FAILED):
                    self._ended = (name, value)
                    break
                tell(self._callbacks, name, value)
                if name == "on_token":
                    return str(value)
        except BaseException:  # an interrupted caller, or a callback that raises, leaves nothing running
            self.close()
            raise
        if name == _FAILED:
            raise value
        raise StopIteration

    @property
    def result(self) -> Result:
        """The whole answer.

        Raises:
            QueryError: the pieces are not through yet, or the search was ended before.
        """
        return _result(self._ended)

    def wait(self) -> Result:
        """The whole answer, whatever is left of its pieces."""
        for _ in self:
            pass
        return self.result

    def close(self) -> None:
        """End the search; returns when nothing of it runs any more."""
        if self._running is not None and self._ended is None:
            self._running.stop().result()
        self._ended = self._ended or ("closed", None)

    def __enter__(self) -> "AnswerStream[Result]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._running is not None and self._ended is None:
            with contextlib.suppress(RuntimeError):  # at the end of the process there is no loop any more
                self._running.stop()


class AsyncAnswerStream(Generic[Result]):
    """`AnswerStream` for asynchronous callers, and in any event loop."""

    def __init__(self, work: Work[Result], callbacks: Any) -> None:
        self._work, self._callbacks = work, callbacks
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._running: _Running[Result] | None = None
        self._ended: Event | None = None

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        if self._ended:
            raise StopAsyncIteration
        if self._running is None:
            loop, events = asyncio.get_running_loop(), self._events

            def put(event: Event) -> None:
                with contextlib.suppress(RuntimeError):  # the caller's loop may be closed by now
                    loop.call_soon_threadsafe(events.put_nowait, event)

            self._running = _Running(self._work, put)
        try:
            while True:
                name, value = await self._events.get()
                if name in (_DONE, _FAILED):
                    self._ended = (name, value)
                    break
                tell(self._callbacks, name, value)
                if name == "on_token":
                    return str(value)
        except BaseException:
            await self.aclose()
            raise
        if name == _FAILED:
            raise value
        raise StopAsyncIteration

    @property
    def result(self) -> Result:
        """The whole answer.

        Raises:
            QueryError: the pieces are not through yet, or the search was ended before.
        """
        return _result(self._ended)

    async def wait(self) -> Result:
        """The whole answer, whatever is left of its pieces."""
        async for _ in self:
            pass
        return self.result

    async def aclose(self) -> None:
        """End the search; returns when nothing of it runs any more."""
        if self._running is not None and self._ended is None:
            # Waited for even where the caller is cancelled again meanwhile: it is over in a moment.
            await asyncio.shield(asyncio.wrap_future(self._running.stop()))
        self._ended = self._ended or ("closed", None)

    async def __aenter__(self) -> "AsyncAnswerStream[Result]":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._running is not None and self._ended is None:
            with contextlib.suppress(RuntimeError):
                self._running.stop()


def _result(ended: Event | None) -> Any:
    if ended is None:
        raise QueryError("The answer is not complete yet: read the stream to its end, or call wait().")
    if ended[0] == _FAILED:
        raise ended[1]
    if ended[0] != _DONE:
        raise QueryError("The search was ended before its answer was complete.")
    return ended[1]
