"""Answers in pieces, for synchronous and asynchronous callers, by a model over HTTP and without one."""

import asyncio
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.contracts.answering import NO_ANSWER, Evidence, Reply
from graphrag_assets.embedded.answerer import EmbeddedAnswerer
from graphrag_assets.errors import QueryError
from graphrag_assets.llm.model_errors import RetriesExhausted
from graphrag_assets.query import METHODS, GraphRAG
from tests.openai_server import OpenAIServer
from tests.query.modeled import says, user_message

QUESTION = "Who commanded the Niagara?"
CITED = {
    "local": "Reports (0)",
    "ask": "Reports (0)",
    "basic": "Sources (0)",
    "lazy": "Sources (0.2)",
    "planned": "Sources (0)",
}
HUDSON = "Captain William Hudson commanded the Niagara."


def said_of(body: dict[str, Any]) -> str:
    """Cites rows in the data of the request."""
    rows = (row for row in ("Sources (0.2)", "Reports") if row in user_message(body))
    report = "Reports (0)" if "-----Reports-----" in user_message(body) else "Reports (3)"  # or in notes
    row = next(rows, "Sources (0)").replace("Reports", report)
    return f"{HUDSON} [Data: {row}] He was content."


def points_of(body: dict[str, Any]) -> dict[str, Any]:
    """A point that cites a report, or the sentence of a lazy search."""
    row = "Sources (0.2)" if "(0.2) Captain" in user_message(body) else "Reports (3)"
    return {"points": [{"description": f"Hudson commanded her. [Data: {row}]", "score": 80}]}


@pytest.fixture
def server(server: OpenAIServer) -> OpenAIServer:
    report = {"description": "Hudson commanded her. [Data: Reports (3)]", "score": 80}
    server.content = says(
        text=said_of,
        MapAnswer=points_of,
        DriftAnswer={"points": [report], "follow_ups": [{"question": "Who was Hudson?", "score": 70}]},
        QuestionKind={"kind": "fact", "reason": "It names a ship."},
        Questions={"questions": ["What became of the Niagara?", QUESTION]},
        SubQuestions={"question": QUESTION, "questions": []},
        RelevantUnits={"units": [{"id": 1, "sentences": [2]}]},
        StepValues={"values": [{"value": "William Hudson", "statement": f"{HUDSON} [Data: Sources (0)]"}]},
        PlannedSteps={"steps": [{"variable": "answer", "question": QUESTION}]},
    )
    return server


@pytest.mark.parametrize("method", [*METHODS, "ask"])
def test_a_models_answer_comes_in_pieces_that_make_the_answer(modeled: GraphRAG, server, method: str) -> None:
    stream = modeled.stream(method, QUESTION)
    pieces = list(stream)
    assert len(pieces) > 3
    assert "".join(pieces) == stream.result.answer
    assert stream.result.answer == f"{HUDSON} [Data: {CITED.get(method, 'Reports (3)')}] He was content."
    assert [request.body.get("stream", False) for request in server.chats].count(True) == 1
    assert stream.result.citations[0].quote == HUDSON
    # The same question again: nothing is paid for twice, streamed or not.
    paid = len(server.chats)
    assert modeled.search(method, QUESTION).answer == stream.result.answer
    assert len(server.chats) == paid


@pytest.mark.parametrize("method", [method for method in METHODS if method != "planned"])
def test_without_a_model_the_streamed_answer_is_that_of_search(rag: GraphRAG, method: str) -> None:
    question = "What did the Agamemnon do, and what did the Great Eastern do?"
    stream = rag.stream(method, question)
    pieces = list(stream)
    assert "".join(pieces) == stream.result.answer
    assert stream.result.answer == rag.search(method, question).answer
    assert list(rag.stream(method, "What is the capital of Mongolia?")) == [NO_ANSWER]


def test_a_reference_that_was_not_given_never_shows_as_good_not_even_for_a_moment(
    modeled: GraphRAG, server: OpenAIServer
) -> None:
    server.content = says(text="He did. [Data: Sources (0); Entities (77)] It is so. [Data: Ships (1)]")
    shown = ""
    stream = modeled.stream("local", QUESTION)
    for piece in stream:
        shown += piece
        assert "[Data: Sources (0); Entities" not in shown
        assert "[Data: Ships" not in shown
    assert shown == ("He did. [Data: Sources (0)] [unresolved: Entities (77)] It is so. [unresolved: Ships (1)]")
    assert stream.result.unresolved == ["Entities (77)", "Ships (1)"]
    assert stream.result.answer == shown


def test_an_answer_that_breaks_off_raises_after_its_pieces_and_is_not_kept(
    modeled: GraphRAG, server: OpenAIServer
) -> None:
    server.fail_next("cut")
    stream = modeled.stream("local", QUESTION)
    assert next(stream)
    with pytest.raises(RetriesExhausted, match="was interrupted"):
        list(stream)
    with pytest.raises(RetriesExhausted):
        _ = stream.result
    assert modeled.local(QUESTION).answer.endswith("He was content.")


def test_a_stream_left_early_leaves_nothing_running(modeled: GraphRAG, server: OpenAIServer) -> None:
    server.content = says(text=" ".join(map(str, range(5_000))))
    with modeled.stream("local", QUESTION) as stream:
        next(stream)
    assert list(stream) == []
    with pytest.raises(QueryError, match="ended before"):
        _ = stream.result
    asked = len(server.chats)
    assert not _searches()
    assert len(server.chats) == asked == 1


@pytest.mark.parametrize("method", METHODS)
def test_timeout_reports_progress_and_leaves_nothing_running(
    modeled: GraphRAG, server: OpenAIServer, method: str
) -> None:
    modeled.context("basic", QUESTION)  # imports, and opens the file
    modeled.basic("Who saw penguins?")  # imports the client
    server.latency = 5
    more = {"hypothetical_answer": False} if method == "drift" else {}
    with pytest.raises(QueryError, match=r"timeout of 0\.4 seconds\. Completed: (a context of \d sections|nothing;)"):
        modeled.search(method, QUESTION, timeout=0.4, **more)
    assert not _searches()
    server.latency = 0
    time.sleep(0.1)  # for requests that were on their way
    sent = len(server.chats)
    time.sleep(0.1)
    assert len(server.chats) == sent


def test_canceled_task_leaves_nothing_running_and_keeps_sent_requests(modeled: GraphRAG, server: OpenAIServer) -> None:
    modeled.basic("Who saw penguins?")
    server.latency = 0.5

    async def story() -> None:
        task = asyncio.create_task(modeled.alocal(QUESTION))
        while len(server.chats) < 2:
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not _searches()

    asyncio.run(story())
    server.latency = 0
    _until(lambda: server.in_flight == 0)
    _until(lambda: not _requests_in_flight(modeled))
    modeled.local(QUESTION)
    assert len(server.chats) == 2  # the answer of the canceled search was paid for and is used


def test_an_interrupted_caller_leaves_nothing_running(modeled: GraphRAG, server: OpenAIServer) -> None:
    modeled.basic("Who saw penguins?")
    server.latency = 5

    def press_control_c() -> None:
        _until(lambda: server.in_flight)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=press_control_c).start()
    with pytest.raises(KeyboardInterrupt):
        modeled.local(QUESTION)
    assert not _searches()


def _searches() -> list[Any]:
    """Running searches on the models' event loop."""
    from graphrag_assets.llm.event_loop import _loop

    return [task for task in asyncio.all_tasks(_loop()) if "QuestionTask.run" in str(task.get_coro())]


def _requests_in_flight(rag: GraphRAG) -> Any:
    return rag.answerer.chat.ledger.single_flight._by_key


def _until(condition: Any) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_synchronous_searches_work_inside_a_running_loop(rag: GraphRAG) -> None:
    """As in a notebook."""

    async def cell() -> str:
        return rag.local(QUESTION).answer

    assert HUDSON in asyncio.run(cell())


def test_an_answerer_may_ask_in_turn_by_the_asynchronous_twin_only(index_file: Path) -> None:
    class Asking(EmbeddedAnswerer):
        async def arespond(self, question: str, evidence: Evidence, *_: Any) -> Reply:
            inner = GraphRAG(index_file, answerer=EmbeddedAnswerer())
            with pytest.raises(QueryError, match="use the asynchronous method"):
                inner.basic(question)
            return Reply((await inner.abasic(question)).answer)

    assert HUDSON in GraphRAG(index_file, answerer=Asking()).local(QUESTION).answer
