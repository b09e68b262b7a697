"""A query object from its making to its end: configuration, errors that can be caught, closing beside a search."""

import asyncio
import threading
from pathlib import Path

import pytest

import graphrag_assets
from graphrag_assets.llm import provider
from graphrag_assets.query import (
    METHODS,
    Answerer,
    Evidence,
    GraphRAG,
    IndexMissing,
    InvalidOption,
    ModelUnavailable,
    QueryError,
    QueryTimeout,
    Reply,
    StoreError,
)
from tests.openai_server import FaultPlan, running
from tests.query.modeled import chat_answerer

QUESTION = "Who commanded the Niagara?"


class Echo(Answerer):
    """Answers with the first passage."""

    async def arespond(self, question: str, evidence: Evidence, *options: object) -> Reply:
        first = evidence.passages[0]
        return Reply(f"{first.text} [Data: {first.table} ({first.number})]")


class Stuck(Answerer):
    """Never answers."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def arespond(self, *evidence: object) -> Reply:
        self.asked.set()
        await asyncio.sleep(600)
        raise AssertionError


@pytest.mark.parametrize("method", [*METHODS, "ask"])
def test_an_answerer_needs_one_method_only(index_file: Path, method: str) -> None:
    with GraphRAG(index_file, Echo()) as rag:
        answer = rag.search(method, QUESTION)
        assert answer.answer
        pieces = list(rag.stream(method, QUESTION))
    assert "".join(pieces).startswith(answer.answer[:20])


def test_closing_ends_the_searches_in_progress_and_all_later_ones(index_file: Path) -> None:
    answerer, errors = Stuck(), list[Exception]()
    rag = GraphRAG(index_file, answerer)

    def ask() -> None:
        try:
            rag.local(QUESTION)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert answerer.asked.wait(60)
    rag.close()
    rag.close()
    thread.join(60)
    assert [(type(error), "closed" in str(error)) for error in errors] == [(QueryError, True)]
    for use in (rag.local, rag.retrieve, rag.sql):
        with pytest.raises(QueryError, match="This GraphRAG is closed"):
            use("SELECT 1")


def test_errors_are_of_the_kinds_that_python_has(index_file: Path, tmp_path: Path) -> None:
    with GraphRAG(index_file, Stuck()) as rag:
        with pytest.raises(InvalidOption) as refused:
            rag.local(QUESTION, max_context_tokens=-1)
        with pytest.raises(InvalidOption):
            rag.search("locale", QUESTION)
        with pytest.raises(QueryTimeout) as late:
            rag.local(QUESTION, timeout=2)
    assert isinstance(refused.value, ValueError)
    assert isinstance(late.value, TimeoutError)
    assert "Completed: a context of " in str(late.value)
    with pytest.raises(IndexMissing) as missing:
        GraphRAG(tmp_path / "nowhere")
    assert isinstance(missing.value, StoreError)
    assert graphrag_assets.IndexMissing is IndexMissing
    assert graphrag_assets.GraphRAG is GraphRAG


class Counting(Answerer):
    """Counts in DuckDB, for minutes."""

    def __init__(self) -> None:
        self.ended, self.rag = threading.Event(), list[GraphRAG]()

    async def arespond(self, *_: object) -> Reply:
        await asyncio.to_thread(self.count)
        raise AssertionError

    def count(self) -> None:
        try:
            self.rag[0].index.reader().rows(
                "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE hash(a.range, b.range) = 1"
            )
        finally:
            self.ended.set()


def test_a_timeout_ends_the_statements_in_threads(index_file: Path) -> None:
    answerer = Counting()
    with GraphRAG(index_file, answerer) as rag:
        answerer.rag.append(rag)
        with pytest.raises(QueryTimeout):
            rag.local(QUESTION, timeout=3)
        assert answerer.ended.wait(30)
        with GraphRAG(index_file, Echo()) as other:  # its statements, and later ones of this object, are not affected
            assert other.local(QUESTION).answer
        assert not rag.sql("SELECT title FROM entities").is_empty()


@pytest.mark.extended
def test_a_timeout_while_the_model_is_down_names_its_failure(index_file: Path, tmp_path: Path) -> None:
    provider.litellm()  # its import takes seconds
    with running(faults=FaultPlan({"503": 1.0})) as server:
        answerer = chat_answerer(server, tmp_path, backoff_seconds=0.2, max_retries=1_000)
        with GraphRAG(index_file, answerer) as rag:
            for ask in (rag.search, lambda *given, **more: list(rag.stream(*given, **more))):
                with pytest.raises(QueryTimeout, match=r"did not answer in .*HTTP 503") as late:
                    ask("global", QUESTION, timeout=4)
                assert isinstance(late.value.__cause__, ModelUnavailable)
                assert "Completed: a context of " in str(late.value)
