"""`GraphRAG`: questions to a published index."""

import time
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from graphrag_assets.errors import QueryError
from graphrag_assets.models import asking
from graphrag_assets.models.answering import Answerer, Point, Reply, Usage
from graphrag_assets.query.basic import BasicOptions, basic_context
from graphrag_assets.query.citations import Citation, resolve
from graphrag_assets.query.context import Context, Section, merged_frames
from graphrag_assets.query.drift import DriftOptions, explore, primer_context
from graphrag_assets.query.global_search import GlobalOptions, global_context
from graphrag_assets.query.local import LocalOptions, local_context
from graphrag_assets.query.results import Action, Answer
from graphrag_assets.query.retrieval import Question
from graphrag_assets.store.published import PublishedIndex, Reader

METHODS = ("local", "global", "drift", "basic")

Options = TypeVar("Options", LocalOptions, GlobalOptions, DriftOptions, BasicOptions)


class GraphRAG:
    """Answers questions from a published index; follows new publications; may be shared among threads.

    Args:
        index: an index folder or a published .duckdb file; default `<GRAPHRAG_DATA or ./data>/index`.
        answerer: what turns contexts into answers; default that of the settings: the chat
            model, or sentences of the context, which needs no model.

    Options of a search are keyword arguments: the fields of `LocalOptions`, `GlobalOptions`, `DriftOptions` and
    `BasicOptions`.

    Raises:
        StoreError: nothing is published there.
    """

    def __init__(self, index: str | Path | None = None, answerer: Answerer | None = None) -> None:
        self.index = PublishedIndex(index)
        self.answerer: Answerer = answerer or asking.answerer()
        self.index.reader()

    def local(self, question: str, **options: Any) -> Answer:
        """An answer about particular things: from their part of the graph and the text they stand in."""
        started, reader = time.perf_counter(), self.index.reader()
        context = local_context(reader, Question(question), _options(LocalOptions, options))
        return self._respond(reader, context, started)

    def basic(self, question: str, **options: Any) -> Answer:
        """An answer from the most similar text units alone, without the graph."""
        started, reader = time.perf_counter(), self.index.reader()
        context = basic_context(reader, Question(question), _options(BasicOptions, options))
        return self._respond(reader, context, started)

    def global_(self, question: str, **options: Any) -> Answer:
        """An answer about the corpus as a whole: every report of a level is read, and the best points put together."""
        started, reader = time.perf_counter(), self.index.reader()
        context = global_context(reader, Question(question), _options(GlobalOptions, options))
        usage = {"build_context": Usage(seconds=context.seconds), "map": Usage()}
        points: list[Point] = []
        for section in context.sections:
            if not section.passages:  # a limit too small for any report: nothing to read, so nothing to ask
                continue
            mapped = self.answerer.map(question, section.evidence)
            usage["map"] += mapped.usage
            points += mapped.points
        reply = self.answerer.reduce(question, _relevant(points))
        usage["reduce"] = reply.usage
        return self._answer(reader, "global", question, context.sections, reply, usage, started)

    def drift(self, question: str, **options: Any) -> Answer:
        """An answer found in steps: reports raise follow-up questions, local searches answer them."""
        started, reader = time.perf_counter(), self.index.reader()
        asked = Question(question)
        found = explore(reader, asked, self.answerer, _options(DriftOptions, options))
        reply = self.answerer.reduce(question, _relevant(found.points))
        usage = {**found.usage, "reduce": reply.usage}
        return self._answer(reader, "drift", question, found.sections, reply, usage, started, found.actions)

    def context(self, method: str, question: str, **options: Any) -> Context:
        """What `method` (local, global, drift or basic) would answer from; of DRIFT, its primer's reports."""
        reader, asked = self.index.reader(), Question(question)
        match method:
            case "local":
                return local_context(reader, asked, _options(LocalOptions, options))
            case "basic":
                return basic_context(reader, asked, _options(BasicOptions, options))
            case "global":
                return global_context(reader, asked, _options(GlobalOptions, options))
            case "drift":
                return primer_context(reader, asked, _options(DriftOptions, options))
        raise QueryError(f"There is no search method {method!r}. Choose one of: {', '.join(METHODS)}.")

    def search(self, method: str, question: str, **options: Any) -> Answer:
        """The answer by the method of that name: local, global, drift or basic."""
        searches = {"local": self.local, "global": self.global_, "drift": self.drift, "basic": self.basic}
        if method not in METHODS:
            raise QueryError(f"There is no search method {method!r}. Choose one of: {', '.join(METHODS)}.")
        return searches[method](question, **options)

    def sql(self, query: str, parameters: dict[str, Any] | None = None) -> pl.DataFrame:
        """The result of a query on the published tables; nothing can be written.

        >>> GraphRAG().sql("SELECT title FROM entities WHERE degree > $least", {"least": 10})  # doctest: +SKIP
        """
        return self.index.reader().query(query, parameters)

    def quote(self, citation: Citation, around: int = 0) -> str:
        """The cited passage as its document has it, with `around` characters on both sides."""
        if citation.document_id is None or citation.start_char is None or citation.end_char is None:
            return ""
        start = max(citation.start_char - around, 0)
        found = self.sql(
            "SELECT text[$start : $end] AS quote FROM documents WHERE id = $id",
            {"id": citation.document_id, "start": start + 1, "end": citation.end_char + around},
        )
        return "" if found.is_empty() else str(found.item())

    def _respond(self, reader: Reader, context: Context, started: float) -> Answer:
        reply = self.answerer.respond(context.question, context.evidence)
        usage = {"build_context": Usage(seconds=context.seconds), "response": reply.usage}
        return self._answer(reader, context.method, context.question, context.sections, reply, usage, started)

    def _answer(
        self,
        reader: Reader,
        method: str,
        question: str,
        sections: tuple[Section, ...],
        reply: Reply,
        usage: dict[str, Usage],
        started: float,
        actions: list[Action] | None = None,
    ) -> Answer:
        given: dict[str, set[int]] = {}
        for section in sections:
            given.setdefault(section.name, set()).update(section.numbers)
        citations, unresolved = resolve(reader, reply.text, given)
        return Answer(
            method=method,
            question=question,
            answer=reply.text,
            citations=citations,
            unresolved=unresolved,
            context=merged_frames(sections),
            usage=usage,
            seconds=time.perf_counter() - started,
            model=self.answerer.model,
            publication=reader.publication,
            actions=actions or [],
        )


def _relevant(points: list[Point]) -> list[Point]:
    """Points that say anything, best first."""
    return sorted((p for p in points if p.score > 0), key=lambda p: (-p.score, p.text))


def _options(kind: type[Options], given: dict[str, Any]) -> Options:
    known = [field.name for field in fields(kind)]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise QueryError(f"Unknown search option {', '.join(unknown)}. This method knows: {', '.join(known)}.")
    return kind(**given)
