"""`GraphRAG`: questions to a published index."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_assets.answering import Answerer
from graphrag_assets.errors import QueryError
from graphrag_assets.query import methods, query_models
from graphrag_assets.query.citations import Citation
from graphrag_assets.query.context import Context
from graphrag_assets.query.filters import Filter
from graphrag_assets.query.history import ConversationHistory
from graphrag_assets.query.passages import RankingMethod
from graphrag_assets.query.request import METHODS, Request, request
from graphrag_assets.query.results import Answer
from graphrag_assets.query.running import AnswerStream, AsyncAnswerStream, Emit, Work
from graphrag_assets.query.search import Search
from graphrag_assets.store.publication_reader import PublishedIndex

Begin = Callable[[str, Any, Mapping[str, Any], bool], tuple[Work[Answer], Any]]


class Method:
    """A way of asking: called, it answers; `stream` gives the answer in pieces."""

    def __init__(self, name: str, begin: Begin) -> None:
        self.name, self._begin = name, begin

    def __call__(self, question: str, **options: Any) -> Answer:
        """The answer to the question.

        Raises:
            QueryError: the question, an option or its value is not allowed, or the timeout is over.
            ModelError: the model gave no answer.
        """
        return AnswerStream(*self._begin(self.name, question, options, False)).wait()

    def stream(self, question: str, **options: Any) -> AnswerStream[Answer]:
        """The answer in pieces of text; `result` of the stream is the whole when they are through."""
        return AnswerStream(*self._begin(self.name, question, options, True))


class AsyncMethod:
    """`Method` for asynchronous callers; when the caller is cancelled, so is the search."""

    def __init__(self, name: str, begin: Begin) -> None:
        self.name, self._begin = name, begin

    async def __call__(self, question: str, **options: Any) -> Answer:
        """The answer to the question; raises as `Method` does."""
        return await AsyncAnswerStream(*self._begin(self.name, question, options, False)).wait()

    def stream(self, question: str, **options: Any) -> AsyncAnswerStream[Answer]:
        """The answer in pieces of text; `result` of the stream is the whole when they are through."""
        return AsyncAnswerStream(*self._begin(self.name, question, options, True))


class GraphRAG:
    """Answers questions from a published index; follows new publications; may be shared among threads and tasks.

    Args:
        index: an index folder or a published .duckdb file; default `<GRAPHRAG_DATA or ./data>/index`.
        answerer: what turns contexts into answers; default that of the settings: the chat
            model, or sentences of the context, which needs no model.
        rating_model: what rates reports for dynamic community selection, an answerer or a model's name, such as
            "openai/gpt-4.1-nano"; default: the answerer.

    Attributes:
        local: an answer about particular things: from their part of the graph and the text they stand in.
        global_: an answer about the whole: every report of a level is read, and the best points put together.
        drift: an answer found in steps: reports raise follow-up questions, local searches answer them.
        basic: an answer from the most similar text units alone, without the graph.
        ask: an answer by the method that suits the kind of the question; `Answer.choice` says which, and why.
        alocal, aglobal, adrift, abasic, aask: the same for asynchronous callers.

    Each takes a question and keyword options: those of `CommonOptions`, and of `LocalOptions`, `GlobalOptions`,
    `DriftOptions`, `BasicOptions` or `AskOptions`; each has `.stream`.

    Raises:
        StoreError: nothing is published there.
    """

    def __init__(
        self,
        index: str | Path | None = None,
        answerer: Answerer | None = None,
        rating_model: str | Answerer | None = None,
    ) -> None:
        self.index = PublishedIndex(index)
        self.answerer: Answerer = answerer or query_models.answerer()
        self.rater = (
            query_models.answerer(rating_model) if isinstance(rating_model, str) else rating_model or self.answerer
        )
        self.local = Method("local", self._answering)
        self.global_ = Method("global", self._answering)
        self.drift = Method("drift", self._answering)
        self.basic = Method("basic", self._answering)
        self.ask = Method("ask", self._answering)
        self.alocal = AsyncMethod("local", self._answering)
        self.aglobal = AsyncMethod("global", self._answering)
        self.adrift = AsyncMethod("drift", self._answering)
        self.abasic = AsyncMethod("basic", self._answering)
        self.aask = AsyncMethod("ask", self._answering)
        self.index.reader()

    def search(self, method: str, question: str, **options: Any) -> Answer:
        """The answer by the method of that name: local, global, drift or basic."""
        return Method(_known(method), self._answering)(question, **options)

    async def asearch(self, method: str, question: str, **options: Any) -> Answer:
        """`search` for asynchronous callers."""
        return await AsyncMethod(_known(method), self._answering)(question, **options)

    def stream(self, method: str, question: str, **options: Any) -> AnswerStream[Answer]:
        """The answer in pieces by the method of that name: local, global, drift, basic or ask."""
        return AnswerStream(*self._answering(method, question, options, True))

    def context(self, method: str, question: str, **options: Any) -> Context:
        """What `method` (local, global, drift or basic) would answer from; of DRIFT, its primer's reports.

        Global search and DRIFT read their sections in separate calls: each keeps to `max_context_tokens`.
        """
        return AnswerStream(*self._contexts(method, question, options)).wait()

    async def acontext(self, method: str, question: str, **options: Any) -> Context:
        """`context` for asynchronous callers."""
        return await AsyncAnswerStream(*self._contexts(method, question, options)).wait()

    def retrieve(self, question: str, k: int = 10, method: RankingMethod = "graph", **options: Any) -> pl.DataFrame:
        """The `k` passages (text units) that fit the question best, without an answer.

        Args:
            method: graph: through what passages name and what they are about, as local search ranks them. text: by
                words and vectors, as basic search does. words: BM25 alone. vectors: cosine similarity alone.
            options: a filter (`filter`, or `batches`, `documents`, `metadata`, `entity_types`), `history`, `timeout`.

        Returns:
            rank, score (graph: PageRank; text: BM25 and cosine as parts of their greatest; words: BM25; vectors:
            cosine), document, source, start_char, end_char, rank_by_words, rank_by_vectors, rank_by_graph, about (the
            things that the walk reached the passage through), context, text, human_readable_id, id; best first.

        Raises:
            QueryError: the question, an option or its value is not allowed, or the timeout is over.
        """
        return AnswerStream(*self._retrieving(question, {"k": k, "method": method, **options})).wait()

    async def aretrieve(
        self, question: str, k: int = 10, method: RankingMethod = "graph", **options: Any
    ) -> pl.DataFrame:
        """`retrieve` for asynchronous callers."""
        return await AsyncAnswerStream(*self._retrieving(question, {"k": k, "method": method, **options})).wait()

    def questions(self, history: Any = (), count: int = 5, **options: Any) -> list[str]:
        """Up to `count` questions worth asking next, of those that the data answers.

        Args:
            history: what was asked so far, the last question last: texts, turns, or a `ConversationHistory`. The
                questions come from what a local search for it finds; without any, from the weightiest reports.
            options: those of a local search.
        """
        return AnswerStream(*self._suggesting(history, count, options)).wait()

    async def aquestions(self, history: Any = (), count: int = 5, **options: Any) -> list[str]:
        """`questions` for asynchronous callers."""
        return await AsyncAnswerStream(*self._suggesting(history, count, options)).wait()

    def sql(self, query: str, parameters: dict[str, Any] | None = None) -> pl.DataFrame:
        """The result of one SELECT on the published tables, views and macros (docs/sql.md); nothing can be written.

        >>> GraphRAG().sql("SELECT title FROM entities WHERE degree > $least", {"least": 10})  # doctest: +SKIP
        >>> GraphRAG().sql("FROM neighbors($title, 2)", {"title": "Great Eastern"})  # doctest: +SKIP

        Raises:
            StoreError: it is something else, or DuckDB rejects it; then the message is DuckDB's.
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

    def _answering(
        self, method: str, question: Any, options: Mapping[str, Any], streaming: bool
    ) -> tuple[Work[Answer], Any]:
        asked = request(method if method == "ask" else _known(method), question, options)
        told = asked.common.callbacks
        streaming = streaming or getattr(told, "on_token", None) is not None
        return self._begun(asked, methods.answer, streaming), told

    def _contexts(self, method: str, question: Any, options: Mapping[str, Any]) -> tuple[Work[Context], Any]:
        asked = request(_known(method), question, options)
        return self._begun(asked, methods.context), asked.common.callbacks

    def _retrieving(self, question: Any, options: Mapping[str, Any]) -> tuple[Work[pl.DataFrame], Any]:
        known = {"k", "method", "filter", "history", "timeout", "callbacks", *(f.name for f in fields(Filter))}
        if unknown := sorted(options.keys() - known):
            raise QueryError(f"Unknown option {', '.join(unknown)}. retrieve knows: {', '.join(sorted(known))}.")
        asked = request("retrieve", question, options)
        return self._begun(asked, methods.retrieve), asked.common.callbacks

    def _suggesting(self, history: Any, count: int, options: Mapping[str, Any]) -> tuple[Work[list[str]], Any]:
        given = [history] if isinstance(history, str) else history
        if not isinstance(given, ConversationHistory):
            given = [("user", one) if isinstance(one, str) else one for one in given]
        turns = ConversationHistory.of(given)
        asked = [turn.content for turn in turns.turns if turn.role == "user"]
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise QueryError(f"The number of questions is {count!r}; it must be a whole number from 1.")
        # The last question is what is looked for, those before are its history.
        made = request("local", asked[-1] if asked else "?", {"history": _before_the_last(turns), **options})
        return self._begun(made, lambda search: methods.questions(search, asked, count)), made.common.callbacks

    def _begun(
        self, asked: Request, work: Callable[[Search], Coroutine[Any, Any, Any]], streaming: bool = False
    ) -> Callable[[Emit], Coroutine[Any, Any, Any]]:
        async def begin(emit: Emit) -> Any:
            reader = await asyncio.to_thread(self.index.reader)  # the newest publication
            await asyncio.to_thread(reader.check_version)
            search = Search(reader, asked, self.answerer, self.rater, emit, streaming)
            return await work(search)

        return begin


def _before_the_last(history: ConversationHistory) -> ConversationHistory:
    """The turns in front of the last question."""
    last = max((place for place, turn in enumerate(history.turns) if turn.role == "user"), default=0)
    return ConversationHistory(history.turns[:last])


def _known(method: str) -> str:
    if method not in METHODS:
        raise QueryError(f"There is no search method {method!r}. Choose one of: {', '.join(METHODS)}.")
    return method
