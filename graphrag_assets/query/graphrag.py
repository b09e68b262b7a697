"""`GraphRAG`: answers questions from a publication."""

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from graphrag_assets.contracts.answering import Answerer, Evidence
from graphrag_assets.contracts.plans import Plan
from graphrag_assets.errors import InvalidOption, QueryError
from graphrag_assets.extras.lazy import LazyOptions
from graphrag_assets.extras.planned import PlannedOptions, plan
from graphrag_assets.llm.event_loop import submit
from graphrag_assets.query import local, query_models
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.basic import BasicOptions
from graphrag_assets.query.choice import answer_by_kind
from graphrag_assets.query.citations import Citation
from graphrag_assets.query.context import Context, fill
from graphrag_assets.query.drift import DriftOptions
from graphrag_assets.query.fetch import level_reports
from graphrag_assets.query.global_search import GlobalOptions
from graphrag_assets.query.history import ConversationHistory, History
from graphrag_assets.query.local import LocalSearchOptions
from graphrag_assets.query.methods import METHODS, SEARCH_METHODS, AnswerMethodName, MethodName, SearchMethod
from graphrag_assets.query.options import CommonOptions, QuestionOptions, options_of, takes
from graphrag_assets.query.passages import RetrieveOptions, retrieve
from graphrag_assets.query.query_models import Embedder, Models
from graphrag_assets.query.question import MAX_QUESTION_CHARACTERS, Question
from graphrag_assets.query.question_task import AnswerStream, QuestionTask
from graphrag_assets.query.results import Answer
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_reader import CurrentPublication

_QUESTIONS_BEFORE = 6  # that the next questions are looked for with, the newest
Result = TypeVar("Result")


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

    A search takes a question and keyword options, which `help(rag.local)` lists. `stream`, `context` and `search` take
    the name of the method before them. Each has a twin for asynchronous callers: `alocal`, `astream` and so on.

    Raises:
        StoreError: nothing is published there.
    """

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
        self.models = Models(settings, self.answerer, rater or self.answerer, embedder)
        self._running = set[QuestionTask[Any]]()

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
        for task in [*self._running]:
            await task.end("The GraphRAG was closed before the answer was complete.")

    @takes(LocalSearchOptions)
    def local(self, question: str, options: LocalSearchOptions) -> Answer:
        """Return an answer about particular things: from their part of the graph and the text that names them."""
        return self._answer("local", question, options).wait()

    @takes(LocalSearchOptions)
    async def alocal(self, question: str, options: LocalSearchOptions) -> Answer:
        """`local` for asynchronous callers."""
        return await self._answer("local", question, options).result()

    @takes(GlobalOptions)
    def global_(self, question: str, options: GlobalOptions) -> Answer:
        """Return an answer about the whole: every report of a level is read, and the best points become the answer."""
        return self._answer("global", question, options).wait()

    @takes(GlobalOptions)
    async def aglobal(self, question: str, options: GlobalOptions) -> Answer:
        """`global_` for asynchronous callers."""
        return await self._answer("global", question, options).result()

    @takes(DriftOptions)
    def drift(self, question: str, options: DriftOptions) -> Answer:
        """Return an answer found in steps: reports raise follow-up questions, local searches answer them."""
        return self._answer("drift", question, options).wait()

    @takes(DriftOptions)
    async def adrift(self, question: str, options: DriftOptions) -> Answer:
        """`drift` for asynchronous callers."""
        return await self._answer("drift", question, options).result()

    @takes(BasicOptions)
    def basic(self, question: str, options: BasicOptions) -> Answer:
        """Return an answer from the most similar text units alone, without the graph."""
        return self._answer("basic", question, options).wait()

    @takes(BasicOptions)
    async def abasic(self, question: str, options: BasicOptions) -> Answer:
        """Return `basic` for asynchronous callers."""
        return await self._answer("basic", question, options).result()

    @takes(LazyOptions)
    def lazy(self, question: str, options: LazyOptions) -> Answer:
        """Return an answer from the text units that a budget of relevance tests finds; `Answer.tests` has the
        verdicts.
        """
        return self._answer("lazy", question, options).wait()

    @takes(LazyOptions)
    async def alazy(self, question: str, options: LazyOptions) -> Answer:
        """`lazy` for asynchronous callers."""
        return await self._answer("lazy", question, options).result()

    @takes(PlannedOptions)
    def planned(self, question: str, options: PlannedOptions) -> Answer:
        """Return an answer in steps: what the question describes is found first; `Answer.steps` says what each
        found.
        """
        return self._answer("planned", question, options).wait()

    @takes(PlannedOptions)
    async def aplanned(self, question: str, options: PlannedOptions) -> Answer:
        """`planned` for asynchronous callers."""
        return await self._answer("planned", question, options).result()

    @takes(CommonOptions)
    def ask(self, question: str, options: CommonOptions) -> Answer:
        """Return an answer by the method that suits the kind of the question; `Answer.choice` says which, and why."""
        return self._answer("ask", question, options).wait()

    @takes(CommonOptions)
    async def aask(self, question: str, options: CommonOptions) -> Answer:
        """`ask` for asynchronous callers."""
        return await self._answer("ask", question, options).result()

    @takes(RetrieveOptions)
    def retrieve(self, question: str, options: RetrieveOptions) -> pl.DataFrame:
        """Return the passages (text units) that match the question best, without an answer.

        Returns:
            rank, score (graph: PageRank; text: BM25 and cosine, each spread from 0 to 1; words: BM25; vectors:
            cosine), document, source, place, start_char, end_char, rank_by_words, rank_by_vectors, rank_by_graph, about
            (the things through which the walk reached the passage), entities (those it names), context, text,
            human_readable_id, id, document_id; best first.

        Raises:
            QueryError: the question, an option or its value is not allowed, or the timeout is over.
        """
        return self._task("retrieve", retrieve, question, options).wait()

    @takes(RetrieveOptions)
    async def aretrieve(self, question: str, options: RetrieveOptions) -> pl.DataFrame:
        """`retrieve` for asynchronous callers."""
        return await self._task("retrieve", retrieve, question, options).result()

    @takes(CommonOptions)
    def plan(self, question: str, options: CommonOptions) -> Plan:
        """Return the steps by which `planned` answers the question, without an answer.

        Returns:
            steps, each with variable and question. Without a chat model, one step, and a note that says so.
        """
        return self._task("plan", plan, question, options).wait()

    @takes(CommonOptions)
    async def aplan(self, question: str, options: CommonOptions) -> Plan:
        """`plan` for asynchronous callers."""
        return await self._task("plan", plan, question, options).result()

    def search(self, method: AnswerMethodName, question: str, **options: object) -> Answer:
        """Return the answer by the method of that name; `rag.local(…)` is the same, with typed options."""
        return self._named_answer(method, question, options).wait()

    async def asearch(self, method: AnswerMethodName, question: str, **options: object) -> Answer:
        """`search` for asynchronous callers."""
        return await self._named_answer(method, question, options).result()

    def stream(self, method: AnswerMethodName, question: str, **options: object) -> AnswerStream:
        """Return the answer in pieces, for `for` and `async for`; after the last, `result` is the complete answer."""
        return AnswerStream(self._named_answer(method, question, options))

    astream = stream

    def context(self, method: MethodName, question: str, **options: object) -> Context:
        """Return the context from which the method would answer; of DRIFT, its primer's reports.

        Global search, DRIFT, lazy and planned search read their sections in separate calls, each within
        `max_context_tokens`. Lazy search tests text units for it, and planned search takes its steps.
        """
        return self._context(method, question, options).wait()

    async def acontext(self, method: MethodName, question: str, **options: object) -> Context:
        """`context` for asynchronous callers."""
        return await self._context(method, question, options).result()

    def questions(self, history: History | str = (), count: int = 5, **options: object) -> list[str]:
        """Up to `count` questions to ask next that the data answers.

        Args:
            history: the questions so far, the newest last: texts, turns, or a `ConversationHistory`. Suggestions come
                from a local search for it; without any, from the most important reports.
            count: maximum number of questions.
            options: those of a local search.
        """
        return self._suggestions(history, count, options).wait()

    async def aquestions(self, history: History | str = (), count: int = 5, **options: object) -> list[str]:
        """`questions` for asynchronous callers."""
        return await self._suggestions(history, count, options).result()

    def sql(self, query: str, parameters: Mapping[str, object] | None = None) -> pl.DataFrame:
        """Return the result of one SELECT on the published tables, views and macros (docs/sql.md); nothing can be
        written.

        >>> GraphRAG().sql("SELECT title FROM entities WHERE degree > $least", {"least": 10})  # doctest: +SKIP
        >>> GraphRAG().sql("FROM neighbors($title, 2)", {"title": "Great Eastern"})  # doctest: +SKIP

        Raises:
            StoreError: it is not a SELECT, or DuckDB rejects it; then the message is DuckDB's.
        """
        return self.index.reader().query(query, parameters)

    def quote(self, citation: Citation, around: int = 0) -> str:
        """Return the cited passage of its document, with `around` characters on both sides; empty if it has no place
        there.

        Raises:
            QueryError: the publication does not have it: the citation is that of another index, or of an earlier
                publication.
        """
        if citation.document_id is None or citation.start_char is None or citation.end_char is None:
            return ""
        start = max(citation.start_char - around, 0)
        quotes = self.sql(
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
        if quotes.is_empty():
            raise QueryError(
                f"The index has no document {citation.document!r} with the cited passage. The citation is that of "
                "another index, or the document has changed since."
            )
        return str(quotes.item())

    def _task(
        self, method: str, steps: Callable[[Ask[Any]], Awaitable[Result]], question: str, options: QuestionOptions
    ) -> QuestionTask[Result]:
        """Refuses an empty question."""
        text = Question(question).text
        return QuestionTask(method, steps, text, options, self.index, self.models, self._running)

    def _answer(self, method: str, question: str, options: CommonOptions) -> QuestionTask[Answer]:
        answer = answer_by_kind if method == "ask" else _search_method(method, METHODS).answer

        async def steps(ask: Ask[Any]) -> Answer:
            return replace(await answer(ask), question=question)

        return self._task(method, steps, question, options)

    def _named_answer(self, method: str, question: str, options: Mapping[str, object]) -> QuestionTask[Answer]:
        kind = CommonOptions if method == "ask" else _search_method(method, (*METHODS, "ask")).options
        return self._answer(method, question, options_of(kind, **options))

    def _context(self, method: str, question: str, options: Mapping[str, object]) -> QuestionTask[Context]:
        named = _search_method(method, METHODS)
        return self._task(method, named.context, question, options_of(named.options, **options))

    def _suggestions(
        self, history: History | str, count: int, options: Mapping[str, object]
    ) -> QuestionTask[list[str]]:
        turns = [history] if isinstance(history, str) else history or ()
        if not isinstance(turns, ConversationHistory):
            turns = [("user", turn) if isinstance(turn, str) else turn for turn in turns]
        questions = ConversationHistory.of(turns).questions
        steps = partial(suggest, questions_before=questions, count=count)
        searched = "\n".join(reversed(questions[-_QUESTIONS_BEFORE:]))[:MAX_QUESTION_CHARACTERS] or "?"
        return self._task("local", steps, searched, options_of(LocalSearchOptions, **options))


def _search_method(name: str, names: Sequence[str]) -> SearchMethod:
    """Return the method of that name, which must be among `names`."""
    if name not in names:
        meant = difflib.get_close_matches(name, names, 1)
        hint = f" Did you mean {meant[0]!r}?" if meant else ""
        raise InvalidOption(f"Unknown search method {name!r}.{hint} The methods are: {', '.join(names)}.")
    return SEARCH_METHODS[name]


async def suggest(ask: Ask[local.LocalSearchOptions], questions_before: Sequence[str], count: int) -> list[str]:
    """Return up to `count` questions to ask after `questions_before`, the last of which is the newest.

    They come from a local search for that one, or else from the most important reports.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InvalidOption(f"The number of questions is {count!r}; it must be a whole number from 1.")
    if questions_before:
        evidence = (await local.build_context(ask)).evidence
    else:
        evidence = await ask.in_thread(_top_reports, ask)
    questions, usage = await ask.models.answerer.aquestions(questions_before, evidence, count, ask.form)
    ask.trace.add("questions", usage)
    return list(questions)


def _top_reports(ask: Ask[local.LocalSearchOptions]) -> Evidence:
    reports = level_reports(ask.reader, 0, ask.scope).with_columns(full_content="content")
    return fill(local.REPORTS, reports, ask.options.max_context_tokens).evidence
