"""Answers in pieces of text, for synchronous and asynchronous callers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator

from graphrag_assets.errors import QueryError
from graphrag_assets.llm.event_loop import submit
from graphrag_assets.query.citations import Citation, given_by, references, resolve
from graphrag_assets.query.question_task import QuestionTask, refuse_inside_a_search
from graphrag_assets.query.results import Answer


async def _pieces(question: QuestionTask[Answer]) -> AsyncGenerator[str, None]:
    """The pieces of an answer, on the models' loop; then the error, if there is one. A search that nobody reads ends.

    asyncio closes the generator when it is no longer referenced.
    """
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    question.on_piece = pieces.put_nowait
    question.task = task = asyncio.create_task(question.run())
    task.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        task.result()
    finally:
        await question.end()


class _Stream:
    """What the streams have in common."""

    def __init__(self, question: QuestionTask[Answer]) -> None:
        self._question = question
        self._pieces = _pieces(question)
        self._is_closed = False

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
        """The passages that a part of the answer cites, which must have begun."""
        ask = self._question.ask
        return resolve(ask.reader, text, given_by(references(text)), ask.scope)[0] if ask else []

    async def _next(self) -> str | None:
        """The next piece; None after the last."""
        return None if self._is_closed else await anext(self._pieces, None)

    async def _close(self) -> None:
        self._is_closed = True
        await self._question.end()


class AnswerStream(_Stream):
    """An answer in pieces of text; after the last piece, `result` is the complete answer.

    The search starts when the first piece is requested. `close`, or leaving a `with` block, ends it early.
    """

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


class AsyncAnswerStream(_Stream):
    """`AnswerStream` for asynchronous callers, in any event loop."""

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
        """End the search; returns when no part of it is running."""
        # Shielded: the search ends within moments, even if the caller is canceled again.
        await asyncio.shield(asyncio.wrap_future(submit(self._close())))

    async def __aenter__(self) -> "AsyncAnswerStream":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
