"""What an answer offers to those who keep, compare and print answers."""

import asyncio
from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.contracts.answering import Usage
from graphrag_assets.query import Answer, Call, Callbacks, Failure, GraphRAG, answers_to_frame

from ..openai_server import running
from .modeled import chat_answerer, says

QUESTION = "Who commanded the Niagara?"


def test_rows_of_answers_are_written_to_parquet_also_those_without_citations(rag: GraphRAG, tmp_path: Path) -> None:
    nothing, answer = rag.local("What is the capital of Mongolia?"), rag.local(QUESTION)
    answers_to_frame([nothing]).write_parquet(tmp_path / "nothing.parquet")
    answers_to_frame([answer]).write_parquet(tmp_path / "answer.parquet")
    nobody, row = pl.read_parquet(tmp_path / "*.parquet").sort("question").to_dicts()
    assert nobody["citations"] == nobody["unresolved"] == nobody["errors"] == []
    (cited,) = answer.citations
    assert row["citations"][0]["document"] == cited.document
    assert row["citations"][0]["quote"] == cited.quote
    assert row["publication"] == 1
    assert row == {**answer.to_row(), "citations": row["citations"]}


def test_each_method_has_its_context(rag: GraphRAG) -> None:
    plain = rag.context("local", QUESTION, top_k_entities=2)
    assert rag.local.context(QUESTION, top_k_entities=2).text == plain.text
    assert asyncio.run(rag.alocal.context(QUESTION, top_k_entities=2)).text == plain.text
    assert asyncio.run(rag.acontext("global", QUESTION)).text == rag.global_.context(QUESTION).text


@pytest.mark.extended
def test_callbacks_follow_steps_calls_and_errors_and_may_be_asynchronous(index_file: Path, tmp_path: Path) -> None:
    seen: dict[str, list] = {"steps": [], "calls": [], "errors": [], "pieces": []}

    async def on_call(call: Call) -> None:
        await asyncio.sleep(0)
        seen["calls"].append(call)

    async def on_token(piece: str) -> None:
        await asyncio.sleep(0)
        seen["pieces"].append(piece)

    callbacks = Callbacks(
        on_step=seen["steps"].append, on_call=on_call, on_error=seen["errors"].append, on_token=on_token
    )
    with (
        running(content=says(text="Hudson did. [Data: Sources (0)]")) as server,
        GraphRAG(index_file, chat_answerer(server, tmp_path)) as rag,
    ):
        first = rag.local(QUESTION, callbacks=callbacks)
        assert "".join(seen["pieces"]) == first.answer
        assert [call.category for call in seen["calls"]] == ["response"]
        assert seen["calls"][0].usage == first.usage["response"]
        assert seen["steps"] == ["build_context", "response"]
        server.fail_next("400")
        seen["calls"].clear()
        answer = asyncio.run(rag.alocal("Who was Hudson?", callbacks=callbacks, linking="model"))
    assert seen["errors"] == answer.errors
    assert [failure.part for failure in seen["errors"]] == ["link"]
    assert isinstance(seen["errors"][0], Failure)
    assert [call.category for call in seen["calls"]] == ["response"]
    assert isinstance(answer, Answer)
    assert answer.total_usage.calls == Usage(calls=1).calls
