"""`GraphRAG`: answers questions from a publication."""

import asyncio
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_assets.contracts.answering import Answerer
from graphrag_assets.errors import InvalidOption, QueryError
from graphrag_assets.extras.lazy import search as lazy_search
from graphrag_assets.extras.planned import search as planned_search
from graphrag_assets.llm.event_loop import submit
from graphrag_assets.query import basic as basic_search
from graphrag_assets.query import choice, global_search, passages, query_models
from graphrag_assets.query import drift as drift_search
from graphrag_assets.query import local as local_search
from graphrag_assets.query.ask import Answering, Ask, Embedder, MethodName, SearchMethod, Tools
from graphrag_assets.query.citations import Citation
from graphrag_assets.query.context import Context
from graphrag_assets.query.history import History
from graphrag_assets.query.method import (
    AnswerMethod,
    AsyncAnswerMethod,
    AsyncMethod,
    Method,
    answering,
    as_answer,
    options_of,
)
from graphrag_assets.query.question_options import CommonOptions
from graphrag_assets.query.results import Answer
from graphrag_assets.query.streaming import AnswerStream, AsyncAnswerStream
from graphrag_assets.query.suggestions import Suggestions, split_history
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_reader import CurrentPublication

SEARCH_METHODS: Mapping[str, SearchMethod[...]] = {
    kind.METHOD.name: kind.METHOD
    for kind in (local_search, global_search, drift_search, basic_search, lazy_search, planned_search)
}
METHODS = tuple(SEARCH_METHODS)


class GraphRAG:
    """Answers questions from a publication. Sees new publications; can be shared among threads and tasks.

    Use it in a `with` block, or call `close`, to close the index file.

    Args:
        index: an index folder or a published .duckdb file; default `<GRAPHRAG_DATA or ./data>/index`.
        answerer: writes answers from contexts; default: that of the settings, which is the chat model, or the
            embedded default, which quotes sentences of the context.
        rating_model: rates reports for dynamic community selection: an answerer, or the name of a model such as
            "openai/gpt-4.1-nano"; default: the answerer.
        settings: `Settings.load(chat_model=…)`; default: those of the environment.
        embedder: embeds questions as the texts of the index are embedded; default: the model of the settings.

    Attributes:
        local: answers about particular things.
        global_: answers about the whole: themes, trends, summaries.
        drift: answers in steps: reports raise follow-up questions, local searches answer them.
        basic: answers from the most similar text units alone, without the graph.
        lazy: answers from the text units that a budget of relevance tests finds.
        planned: answers in steps with variables, for questions with several links.
        plan: these steps, without an answer.
        ask: answers by the method that suits the kind of the question.
        retrieve: the passages that match the question best, without an answer.
        alocal, aglobal, adrift, abasic, alazy, aplanned, aplan, aask, aretrieve: the same for asynchronous callers.

    Each takes a question and keyword options, which `help(rag.local)` lists. Those that answer have `.stream`.

    Raises:
        StoreError: nothing is published there.
    """

    local, alocal = answering(local_search.METHOD)
    global_, aglobal = answering(global_search.METHOD)
    drift, adrift = answering(drift_search.METHOD)
    basic, abasic = answering(basic_search.METHOD)
    lazy, alazy = answering(lazy_search.METHOD)
    planned, aplanned = answering(planned_search.METHOD)
    ask = AnswerMethod("ask", choice.AskOptions, as_answer(choice.answer))
    aask = AsyncAnswerMethod("ask", choice.AskOptions, as_answer(choice.answer))
    retrieve = Method("retrieve", passages.RetrieveOptions, passages.retrieve)
    aretrieve = AsyncMethod("retrieve", passages.RetrieveOptions, passages.retrieve)
    plan = Method("plan", CommonOptions, planned_search.plan)
    aplan = AsyncMethod("plan", CommonOptions, planned_search.plan)

    def __init__(
        self,
        index: str | Path | None = None,
        answerer: Answerer | None = None,
        rating_model: str | Answerer | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        settings = settings or Settings.load()
        self.index = CurrentPublication(index, settings.index_folder)
        reader = self.index.reader()
        self.answerer: Answerer = answerer or query_models.answerer(settings, reader)
        rater = query_models.answerer(settings, reader, rating_model) if isinstance(rating_model, str) else rating_model
        self.tools = Tools(
            settings,
            self.index,
            self.answerer,
            rater or self.answerer,
            SEARCH_METHODS,
            embedder,
        )

    def __enter__(self) -> "GraphRAG":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "GraphRAG":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Cancel the searches in progress, which raise QueryError, and close the index file. Again: no effect.

        Later questions raise QueryError.
        """
        submit(self._end_searches()).result()
        self.index.close()

    async def aclose(self) -> None:
        """`close` for asynchronous callers."""
        await asyncio.wrap_future(submit(self._end_searches()))
        await asyncio.to_thread(self.index.close)

    async def _end_searches(self) -> None:
        for search in [*self.tools.running]:
            await search.cancel("The GraphRAG was closed before the answer was complete.")

    def search(self, method: Answering, question: str, **options: object) -> Answer:
        """The answer by the method of that name; `rag.local(…)` is the same, with typed options."""
        answer: Answer = self._named(method, (*METHODS, "ask"))(question, **options)
        return answer

    async def asearch(self, method: Answering, question: str, **options: object) -> Answer:
        """`search` for asynchronous callers."""
        answer: Answer = await self._named(method, (*METHODS, "ask"), "a")(question, **options)
        return answer

    def stream(self, method: Answering, question: str, **options: object) -> AnswerStream[Answer]:
        """The answer in pieces by the method of that name; `rag.local.stream(…)` is the same, with typed options."""
        stream: AnswerStream[Answer] = self._named(method, (*METHODS, "ask")).stream(question, **options)
        return stream

    def context(self, method: MethodName, question: str, **options: object) -> Context:
        """The context of the method of that name; `rag.local.context(…)` is the same, with typed options."""
        context: Context = self._named(method, METHODS).context(question, **options)
        return context

    async def acontext(self, method: MethodName, question: str, **options: object) -> Context:
        """`context` for asynchronous callers."""
        context: Context = await self._named(method, METHODS, "a").context(question, **options)
        return context

    def questions(self, history: History | str = (), count: int = 5, **options: object) -> list[str]:
        """Up to `count` questions to ask next that the data answers.

        Args:
            history: the questions so far, the newest last: texts, turns, or a `ConversationHistory`. Suggestions come
                from a local search for it; without any, from the most important reports.
            count: maximum number of questions.
            options: those of a local search.
        """
        return AnswerStream[list[str]](self._suggestions(history, count, options)).wait()

    async def aquestions(self, history: History | str = (), count: int = 5, **options: object) -> list[str]:
        """`questions` for asynchronous callers."""
        return await AsyncAnswerStream[list[str]](self._suggestions(history, count, options)).wait()

    def sql(self, query: str, parameters: Mapping[str, object] | None = None) -> pl.DataFrame:
        """The result of one SELECT on the published tables, views and macros (docs/sql.md); nothing can be written.

        >>> GraphRAG().sql("SELECT title FROM entities WHERE degree > $least", {"least": 10})  # doctest: +SKIP
        >>> GraphRAG().sql("FROM neighbors($title, 2)", {"title": "Great Eastern"})  # doctest: +SKIP

        Raises:
            StoreError: it is not a SELECT, or DuckDB rejects it; then the message is DuckDB's.
        """
        return self.index.reader().query(query, parameters)

    def quote(self, citation: Citation, around: int = 0) -> str:
        """The cited passage of its document, with `around` characters on both sides; empty if it has no place there.

        Raises:
            QueryError: the publication does not have it: the citation is that of another index, or of an earlier
                publication.
        """
        if citation.document_id is None or citation.start_char is None or citation.end_char is None:
            return ""
        start = max(citation.start_char - around, 0)
        found = self.sql(
            "SELECT text[$start : $end] AS quote FROM documents WHERE id = $id "
            "AND text[$first : $last] IS NOT DISTINCT FROM coalesce($quote, text[$first : $last])",
            {
                "id": citation.document_id,
                "start": start + 1,
                "end": citation.end_char + around,
                "first": citation.start_char + 1,
                "last": citation.end_char,
                "quote": citation.quote,
            },
        )
        if found.is_empty():
            raise QueryError(
                f"The index has no document {citation.document!r} with the cited passage. The citation is that of "
                "another index, or the document has changed since."
            )
        return str(found.item())

    def _named(self, name: str, names: Sequence[str], prefix: str = "") -> Any:
        """The method of that name: a ContextMethod, with the prefix "a" an AsyncContextMethod."""
        if name not in names:
            meant = difflib.get_close_matches(name, names, 1)
            hint = f" Did you mean {meant[0]!r}?" if meant else ""
            raise InvalidOption(f"Unknown search method {name!r}.{hint} The methods are: {', '.join(names)}.")
        return getattr(self, "global_" if (name, prefix) == ("global", "") else prefix + name)

    def _suggestions(self, history: History | str, count: int, options: dict[str, object]) -> Ask[Any]:
        asked, before = split_history(history)
        suggestions = Suggestions(asked, count)
        # The newest question is searched for; the earlier ones are its history.
        given = options_of(local_search.LocalSearchOptions, (), {"history": before, **options})
        return Ask(self.tools, "local", suggestions.find, asked[-1] if asked else "?", given)
