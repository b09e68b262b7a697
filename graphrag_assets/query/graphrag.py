"""`GraphRAG`: answers questions from a publication."""

import difflib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_assets.answering import Answerer
from graphrag_assets.errors import QueryError, SettingsError
from graphrag_assets.query import ask, basic, drift, global_search, lazy, local, passages, query_models
from graphrag_assets.query.citations import Citation
from graphrag_assets.query.context import Context
from graphrag_assets.query.history import History
from graphrag_assets.query.method import AnswerMethod, AsyncAnswerMethod, AsyncMethod, Method
from graphrag_assets.query.results import Answer
from graphrag_assets.query.search import QuestionOptions, Search, SearchMethod
from graphrag_assets.query.streaming import AnswerStream, AsyncAnswerStream
from graphrag_assets.query.suggestions import Suggestions, split_history
from graphrag_assets.store.publication_reader import CurrentPublication

METHODS = tuple(ask.METHODS)


class GraphRAG:
    """Answers questions from a publication. Sees new publications; can be shared among threads and tasks.

    Use it in a `with` block, or call `close`, to close the index file.

    Args:
        index: an index folder, a published .duckdb file, or a URL that GRAPHRAG_PUBLISH_TO names (s3://…), whose
            publications are downloaded once each; default `<GRAPHRAG_DATA or ./data>/index`.
        answerer: writes answers from contexts; default: that of the settings, which is the chat model, or the
            embedded default, which quotes sentences of the context.
        rating_model: rates reports for dynamic community selection: an answerer, or the name of a model such as
            "openai/gpt-4.1-nano"; default: the answerer.

    Attributes:
        local: answers about particular things.
        global_: answers about the whole: themes, trends, summaries.
        drift: answers in steps: reports raise follow-up questions, local searches answer them.
        basic: answers from the most similar text units alone, without the graph.
        ask: answers by the method that suits the kind of the question.
        retrieve: the passages that match the question best, without an answer.
        alocal, aglobal, adrift, abasic, aask, aretrieve: the same for asynchronous callers.

    Each takes a question and keyword options, which `help(rag.local)` lists. Those that answer have `.stream`.

    The settings GRAPHRAG_LOCAL_OPTIONS, …_GLOBAL_…, …_DRIFT_… and …_BASIC_OPTIONS have defaults for options.

    Raises:
        SettingsError: one of these is no option, or not allowed.
        StoreError: nothing is published there.
    """

    def __init__(
        self,
        index: str | Path | None = None,
        answerer: Answerer | None = None,
        rating_model: str | Answerer | None = None,
    ) -> None:
        self.index = CurrentPublication(index)
        self.answerer: Answerer = answerer or query_models.answerer()
        self.rater = (
            query_models.answerer(rating_model) if isinstance(rating_model, str) else rating_model or self.answerer
        )
        self._defaults = defaults = _checked_defaults()
        self.local = AnswerMethod("local", local.LocalSearchOptions, local.answer, self._begin, defaults["local"])
        self.global_ = AnswerMethod(
            "global", global_search.GlobalSearchOptions, global_search.answer, self._begin, defaults["global"]
        )
        self.drift = AnswerMethod("drift", drift.DriftSearchOptions, drift.answer, self._begin, defaults["drift"])
        self.basic = AnswerMethod("basic", basic.BasicSearchOptions, basic.answer, self._begin, defaults["basic"])
        self.lazy = AnswerMethod("lazy", lazy.LazySearchOptions, lazy.answer, self._begin, defaults["lazy"])
        self.ask = AnswerMethod("ask", ask.AskOptions, ask.answer, self._begin)
        self.alocal = AsyncAnswerMethod("local", local.LocalSearchOptions, local.answer, self._begin, defaults["local"])
        self.aglobal = AsyncAnswerMethod(
            "global", global_search.GlobalSearchOptions, global_search.answer, self._begin, defaults["global"]
        )
        self.adrift = AsyncAnswerMethod("drift", drift.DriftSearchOptions, drift.answer, self._begin, defaults["drift"])
        self.abasic = AsyncAnswerMethod("basic", basic.BasicSearchOptions, basic.answer, self._begin, defaults["basic"])
        self.alazy = AsyncAnswerMethod("lazy", lazy.LazySearchOptions, lazy.answer, self._begin, defaults["lazy"])
        self.aask = AsyncAnswerMethod("ask", ask.AskOptions, ask.answer, self._begin)
        self.retrieve = Method("retrieve", passages.RetrieveOptions, passages.retrieve, self._begin)
        self.aretrieve = AsyncMethod("retrieve", passages.RetrieveOptions, passages.retrieve, self._begin)
        self.index.reader()

    def __enter__(self) -> "GraphRAG":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index file. No search may be running; the next question opens the file again."""
        self.index.close()

    def search(self, method: str, question: str, **options: Any) -> Answer:
        """The answer by the method of that name: local, global, drift, basic, lazy or ask."""
        return AnswerStream[Answer](self._named(method, question, options, False)).wait()

    async def asearch(self, method: str, question: str, **options: Any) -> Answer:
        """`search` for asynchronous callers."""
        return await AsyncAnswerStream[Answer](self._named(method, question, options, False)).wait()

    def stream(self, method: str, question: str, **options: Any) -> AnswerStream[Answer]:
        """The answer in pieces by the method of that name: local, global, drift, basic, lazy or ask."""
        return AnswerStream(self._named(method, question, options, True))

    def context(self, method: str, question: str, **options: Any) -> Context:
        """The context from which a method, any but ask, would answer; of DRIFT, its primer's reports.

        Global search and DRIFT read their sections in separate calls, each within `max_context_tokens`.
        """
        return AnswerStream[Context](self._context(method, question, options)).wait()

    async def acontext(self, method: str, question: str, **options: Any) -> Context:
        """`context` for asynchronous callers."""
        return await AsyncAnswerStream[Context](self._context(method, question, options)).wait()

    def questions(self, history: History | str = (), count: int = 5, **options: Any) -> list[str]:
        """Up to `count` questions to ask next that the data answers.

        Args:
            history: the questions so far, the newest last: texts, turns, or a `ConversationHistory`. Suggestions come
                from a local search for it; without any, from the most important reports.
            count: maximum number of questions.
            options: those of a local search.
        """
        return AnswerStream[list[str]](self._suggestions(history, count, options)).wait()

    async def aquestions(self, history: History | str = (), count: int = 5, **options: Any) -> list[str]:
        """`questions` for asynchronous callers."""
        return await AsyncAnswerStream[list[str]](self._suggestions(history, count, options)).wait()

    def sql(self, query: str, parameters: dict[str, Any] | None = None) -> pl.DataFrame:
        """The result of one SELECT on the published tables, views and macros (docs/sql.md); nothing can be written.

        >>> GraphRAG().sql("SELECT title FROM entities WHERE degree > $least", {"least": 10})  # doctest: +SKIP
        >>> GraphRAG().sql("FROM neighbors($title, 2)", {"title": "Great Eastern"})  # doctest: +SKIP

        Raises:
            StoreError: it is not a SELECT, or DuckDB rejects it; then the message is DuckDB's.
        """
        return self.index.reader().query(query, parameters)

    def quote(self, citation: Citation, around: int = 0) -> str:
        """The cited passage of its document, with `around` characters on both sides."""
        if citation.document_id is None or citation.start_char is None or citation.end_char is None:
            return ""
        start = max(citation.start_char - around, 0)
        found = self.sql(
            "SELECT text[$start : $end] AS quote FROM documents WHERE id = $id",
            {"id": citation.document_id, "start": start + 1, "end": citation.end_char + around},
        )
        return "" if found.is_empty() else str(found.item())

    def _begin(
        self,
        method: str,
        steps: Callable[[Search[Any]], Awaitable[Any]],
        question: Any,
        options: QuestionOptions,
        streaming: bool = False,
    ) -> Search[Any]:
        """A search, not yet running. Raises QueryError if the question is not allowed."""
        models = self.answerer, self.rater
        return Search(method, question, options, self.index, *models, steps, streaming, defaults=self._defaults)

    def _named(self, method: str, question: str, options: dict[str, Any], streaming: bool) -> Search[Any]:
        if method == "ask":
            return self._begin("ask", ask.answer, question, ask.AskOptions(**options), streaming)
        chosen = _method(method)
        given = self._defaults[method] | options
        return self._begin(method, chosen.answer, question, chosen.options(**given), streaming)

    def _context(self, method: str, question: str, options: dict[str, Any]) -> Search[Any]:
        chosen = _method(method)
        return self._begin(method, chosen.context, question, chosen.options(**self._defaults[method] | options))

    def _suggestions(self, history: Any, count: int, options: dict[str, Any]) -> Search[Any]:
        asked, before = split_history(history)
        suggestions = Suggestions(asked, count)
        # The newest question is searched for; the earlier ones are its history.
        given = local.LocalSearchOptions(**{"history": before, **self._defaults["local"], **options})
        return self._begin("local", suggestions.find, asked[-1] if asked else "?", given)


def _checked_defaults() -> dict[str, dict[str, Any]]:
    """The options of the settings by method; raises SettingsError for one that is not allowed."""
    found = query_models.default_options()
    for method, options in found.items():
        try:
            ask.METHODS[method].options(**options)
        except QueryError as error:
            raise SettingsError(f"GRAPHRAG_{method.upper()}_OPTIONS: {error}") from None
    return found


def _method(name: str) -> SearchMethod[...]:
    if name not in METHODS:
        meant = difflib.get_close_matches(name, METHODS, 1)
        hint = f" Did you mean {meant[0]!r}?" if meant else ""
        raise QueryError(f"Unknown search method {name!r}.{hint} The methods are: {', '.join(METHODS)}.")
    return ask.METHODS[name]
