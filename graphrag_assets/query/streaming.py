"""Runs a search on the models' event loop and passes its events to the caller, who may be synchronous or not.

The loop is the one that all calls to models share (`llm/event_loop.py`), because connections and rate limits live in
it. Asynchronous callers use it as well: a search never blocks their own loop, and both variants share one
implementation.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Iterator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from graphrag_assets.errors import QueryError
from graphrag_assets.llm.event_loop import is_current, submit
from graphrag_assets.query.ask import DONE, FAILED, Ask, Event
from graphrag_assets.query.citations import Citation, given_by, references, resolve

Result = TypeVar("Result")
_CLOSED = "closed"


class _Stream(Generic[Result]):
    """The events of a search on the models' loop, of which the pieces of its answer are some."""

    def __init__(self, ask: Ask[Any]) -> None:
        self._search = ask
        self._run: Future[None] | None = None
        self._end: Event | None = None

    @property
    def result(self) -> Result:
        """The complete answer.

        Raises:
            QueryError: the stream was not read to its end, or was closed.
        """
        if self._end is None:
            raise QueryError("The answer is not complete yet: read the stream to its end, or call wait().")
        name, value = self._end
        if name == FAILED:
            raise value
        if name == _CLOSED:
            raise QueryError("The search was ended before its answer was complete.")
        return value

    def citations_in(self, text: str) -> list[Citation]:
        """The passages that a part of the answer cites, which must have begun."""
        return resolve(self._search.reader, text, given_by(references(text)), self._search.scope)[0]

    def _called(self, event: Event) -> Awaitable[None] | None:
        """What the function for the event returns, to be awaited if it is asynchronous; keeps the last event.

        Raises:
            Exception: the search failed, or the function raised an error.
        """
        name, value = event
        if name in (DONE, FAILED):
            self._end = event
            if name == FAILED:
                raise value
            return None
        function = getattr(self._search.options.callbacks, name, None)
        pending = function(value) if function else None
        return pending if isinstance(pending, Awaitable) else None

    def _stop(self) -> "Future[None] | None":
        """Cancel the search if it is running; the future is done when it has ended."""
        must_cancel = self._run is not None and self._end is None
        self._end = self._end or (_CLOSED, None)
        # Submitted after `run`, so `run` has started by then.
        return submit(self._search.cancel()) if must_cancel else None

    def __del__(self) -> None:
        with contextlib.suppress(RuntimeError):  # at the end of the process the loop is closed
            self._stop()


def _text_of(event: Event) -> str:
    """The text of an `on_token` event; empty for others."""
    name, value = event
    return str(value) if name == "on_token" else ""


async def _awaited(pending: Awaitable[None]) -> None:
    await pending


class AnswerStream(_Stream[Result]):
    """An answer in pieces of text; after the last piece, `result` is the complete answer.

    The search starts when the first piece is requested. `close`, or leaving a `with` block, ends it early.
    """

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if is_current():  # an answerer that asks a question itself
            raise QueryError("A search inside a search would deadlock: use the asynchronous method, such as `alocal`.")
        try:
            while self._end is None:
                self._run = self._run or submit(self._search.run())
                event = submit(self._search.events.get()).result()
                if pending := self._called(event):
                    submit(_awaited(pending)).result()
                if piece := _text_of(event):
                    return piece
        except BaseException:  # also if the caller is interrupted, or a callback fails
            self.close()
            raise
        raise StopIteration

    def wait(self) -> Result:
        """The complete answer; reads the remaining pieces."""
        for _ in self:
            pass
        return self.result

    def close(self) -> None:
        """End the search; returns when no part of it is running."""
        if stopped := self._stop():
            stopped.result()

    def __enter__(self) -> "AnswerStream[Result]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncAnswerStream(_Stream[Result]):
    """`AnswerStream` for asynchronous callers, in any event loop."""

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        try:
            while self._end is None:
                self._run = self._run or submit(self._search.run())
                event = await asyncio.wrap_future(submit(self._search.events.get()))
                if pending := self._called(event):
                    await pending
                if piece := _text_of(event):
                    return piece
        except BaseException:
            await self.aclose()
            raise
        raise StopAsyncIteration

    async def wait(self) -> Result:
        """The complete answer; reads the remaining pieces."""
        async for _ in self:
            pass
        return self.result

    async def aclose(self) -> None:
        """End the search; returns when no part of it is running."""
        if stopped := self._stop():
            # Shielded: the search ends within moments, even if the caller is canceled again.
            await asyncio.shield(asyncio.wrap_future(stopped))

    async def __aenter__(self) -> "AsyncAnswerStream[Result]":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
