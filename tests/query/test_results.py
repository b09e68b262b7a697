"""What an answer offers to those who keep, compare and print answers."""

import asyncio
from pathlib import Path

import pytest

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.query import Answer, Callbacks, Failure, GraphRAG, QueryError

from ..openai_server import running
from .modeled import chat_answerer, says

QUESTION = "Who commanded the Niagara?"


class Told(Callbacks):
    def __init__(self) -> None:
        self.calls, self.errors = list[tuple[str, Usage]](), list[Failure]()

    def on_call(self, category: str, usage: Usage) -> None:
        self.calls.append((category, usage))

    def on_error(self, failure: Failure) -> None:
        self.errors.append(failure)


@pytest.mark.extended
def test_callbacks_are_told_of_calls_and_errors(index_file: Path, tmp_path: Path) -> None:
    told, later = Told(), Told()
    with (
        running(content=says(text="Hudson did. [Data: Sources (0)]")) as server,
        GraphRAG(index_file, chat_answerer(server, tmp_path)) as rag,
    ):
        first = rag.local(QUESTION, callbacks=told)
        assert told.calls == [("response", first.usage["response"])]
        server.fail_next("400")
        answer = asyncio.run(rag.alocal("Who was he?", callbacks=later, history=[("user", QUESTION)]))
        with pytest.raises(QueryError, match="instance of Callbacks"):
            rag.local(QUESTION, callbacks=print)
    assert later.errors == answer.errors
    assert [failure.part for failure in later.errors] == ["rewrite"]
    assert [category for category, _ in later.calls] == ["response"]
    assert isinstance(answer, Answer)
    assert answer.total_usage.calls == Usage(calls=1).calls
