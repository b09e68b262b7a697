"""A search under way: what it may use, what it has used and done so far, and whom it tells."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, TypeVar

import polars as pl

from graphrag_assets.answering import Answerer, AnswerOptions, Evidence, Mapped, Pieces, Point, Reply, Usage
from graphrag_assets.embedded import hashed_embeddings
from graphrag_assets.errors import QueryError
from graphrag_assets.query import query_models
from graphrag_assets.query.citations import Checked, Given, cited_by, resolve
from graphrag_assets.query.context import Context, Section, merged_frames
from graphrag_assets.query.filters import EVERYTHING, Scope, scope_of
from graphrag_assets.query.request import Request
from graphrag_assets.query.results import Action, Answer, Chosen, Failure
from graphrag_assets.query.retrieval import Question
from graphrag_assets.query.running import Emit
from graphrag_assets.store.publication_reader import Reader

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


@dataclass
class Search:
    """One question on one published index; `answerer` answers it, `rater` rates reports for it.

    SQL runs in threads, so that nothing holds up the event loop; calls of a model are awaited.
    """

    reader: Reader
    request: Request
    answerer: Answerer
    rater: Answerer
    emit: Emit
    streaming: bool = False
    scope: Scope = EVERYTHING
    history: Section | None = None
    form: AnswerOptions = field(default_factory=AnswerOptions)
    usage: dict[str, Usage] = field(default_factory=lambda: {"build_context": Usage()})
    errors: list[Failure] = field(default_factory=list)
    unresolved: dict[str, None] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    choice: Chosen | None = None
    started: float = field(default_factory=time.perf_counter)

    async def begin(self) -> None:
        """Find out what the filter allows, and which earlier turns go with the question."""
        self.scope = await asyncio.to_thread(scope_of, self.reader, self.request.common.filter)
        self.history = await asyncio.to_thread(lambda: self.request.history)
        embedding = await asyncio.to_thread(lambda: self.reader.embedding)
        by_meaning = embedding is not None and embedding[0] != hashed_embeddings.MODEL
        history = self.history.text if self.history else ""
        self.form = replace(self.request.form, history=history, by_meaning=by_meaning)

    async def within(self, seconds: float | None, work: Awaitable[Result]) -> Result:
        """The result of `work`, if it comes in time.

        Raises:
            QueryError: it did not, and what had been done until then.
        """
        try:
            async with asyncio.timeout(seconds) as limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
        done = "; ".join(self.done) or "nothing"
        calls = sum(usage.calls for usage in self.usage.values())
        raise QueryError(
            f"The {self.request.method} search was ended by its timeout of {seconds:g} seconds. "
            f"Done until then: {done}; {calls} calls to a model. Give it more time, or less to read "
            "(max_context_tokens)."
        )

    def used(self, category: str, usage: Usage) -> None:
        """Book what a part of the search used."""
        self.usage[category] = self.usage.get(category, Usage()) + usage

    async def retrieve(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """The result of SQL, from a thread; its time is that of building the context."""
        started = time.perf_counter()
        try:
            return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            self.used("build_context", Usage(seconds=time.perf_counter() - started))

    async def embed(self, *questions: Question) -> None:
        """Embed the questions, where that takes a request to a model: all of them by one."""
        embedding = await asyncio.to_thread(lambda: self.reader.embedding)
        if embedding is None or embedding[0] == hashed_embeddings.MODEL:
            return
        vectors, usage = await query_models.embed(embedding[0], [question.embedded_text for question in questions])
        self.used("build_context", usage)
        for question, vector in zip(questions, vectors, strict=True):
            question.remember(embedding[0], vector)

    def has_context(self, context: Context) -> Context:
        """Tell of a context."""
        self.emit("on_context", context)
        read = sum(1 for section in context.sections if section.passages)
        self.done.append(f"a context of {read} sections")
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
        """What a part of the data says; references of its points to what is not in it are removed, and noted.

        `ranked`: the passages stand in the order of their similarity to the question.
        """
        form = self.form if ranked else replace(self.form, by_meaning=False)
        mapped = await self.answerer.amap(question, evidence, follow_ups, main_question, form)
        self.used(category, mapped.usage)
        given: dict[str, set[int]] = {}
        for passage in evidence.passages:
            given.setdefault(passage.table, set()).add(passage.number)
        points = []
        for point in mapped.points:
            text, lost = Checked.text(point.text, given, remove=True)
            self.unresolved |= dict.fromkeys(lost)
            points.append(Point(text, point.score))
        mapped = replace(mapped, points=tuple(points))
        self.emit("on_map", mapped)
        self.done.append(f"{len(points)} points from a part of the data")
        return mapped

    async def at_once(
        self, part: str, calls: Sequence[tuple[str, Coroutine[Any, Any, Result]]], all_may_fail: bool = False
    ) -> list[Result | Exception]:
        """The results of calls made at once, in their order; one that failed gives its error, which is noted.

        Args:
            calls: what is lost without the call, and the call.

        Raises:
            Exception: all of them failed, and may not; the first one's.
        """

        async def one(call: Coroutine[Any, Any, Result]) -> Result | Exception:
            try:
                return await call
            except Exception as error:
                return error

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call)) for _, call in calls]
        results = [task.result() for task in tasks]
        failed = [(what, r) for (what, _), r in zip(calls, results, strict=True) if isinstance(r, Exception)]
        self.errors += [Failure(part, what, str(error)) for what, error in failed]
        if failed and len(failed) == len(calls) and not all_may_fail:
            raise failed[0][1]
        return results

    async def say(
        self,
        category: str,
        given: Given,
        whole: Callable[[], Awaitable[Reply]],
        pieces: Callable[[], Pieces],
    ) -> str:
        """The text of an answer, its references checked; streamed, if that is wanted, as it comes."""
        if not self.streaming:
            reply = await whole()
            self.used(category, reply.usage)
            text, lost = Checked.text(reply.text, given)
            self.unresolved |= dict.fromkeys(lost)
            return text
        checked, said = Checked(given), []
        async with aclosing(pieces()) as stream:
            async for piece in stream:
                if isinstance(piece, Reply):
                    self.used(category, piece.usage)
                elif shown := checked.feed(piece):
                    said.append(shown)
                    self.emit("on_token", shown)
        if shown := checked.end():
            said.append(shown)
            self.emit("on_token", shown)
        self.unresolved |= checked.unresolved
        return "".join(said)

    async def answer(
        self, text: str, sections: Sequence[Section], given: Given, actions: Sequence[Action] = ()
    ) -> Answer:
        """The result: the text, its citations led back to documents, and all it rests on."""
        citations, lost = await asyncio.to_thread(resolve, self.reader, text, given, self.scope)
        frames = await asyncio.to_thread(_frames, sections, self.history, text)
        return Answer(
            method=self.request.method,
            question=self.request.question,
            answer=text,
            citations=citations,
            unresolved=list(self.unresolved | dict.fromkeys(lost)),
            context=frames,
            usage=self.usage,
            seconds=time.perf_counter() - self.started,
            model=self.answerer.model,
            publication=self.reader.publication,
            actions=list(actions),
            errors=self.errors,
            choice=self.choice,
        )


def _frames(sections: Sequence[Section], history: Section | None, text: str) -> dict[str, pl.DataFrame]:
    """The sections' frames with the flag `cited`."""
    cited = {table.lower(): numbers for table, numbers in cited_by([text]).items()}
    frames = merged_frames(sections)
    flagged = {
        name: frame.with_columns(
            cited=pl.col("human_readable_id").is_in(sorted(cited.get(name, ()))) & pl.col("in_context")
        )
        for name, frame in frames.items()
    }
    return flagged | ({history.name.lower(): history.frame} if history else {})
