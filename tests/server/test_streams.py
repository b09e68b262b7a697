"""Clients that leave, and searches that take too long."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from graphrag_assets.contracts.answering import PLAIN, Answerer, AnswerOptions, Evidence, Reply
from graphrag_assets.query import GraphRAG
from graphrag_assets.testing import index_of
from tests.server.conftest import completion, serve


class Slow(Answerer):
    """Answers after a minute, and knows whether it began and was canceled."""

    model = "slow"

    def __init__(self) -> None:
        self.begun, self.canceled = threading.Event(), threading.Event()

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.canceled.set()
            raise
        return Reply("At last.")


@pytest.fixture(scope="module")
def noted() -> Iterator[Path]:
    """The index of a note."""
    with index_of({"note": "Ada Lovelace met Charles Babbage in London."}) as rag:
        yield rag.index.path


QUESTION = "Whom did Ada Lovelace meet?"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_ends_its_search_within_a_second(noted, stream):
    slow = Slow()
    with GraphRAG(noted, slow) as rag, serve(rag) as served:

        async def leave() -> None:
            async with httpx.AsyncClient(base_url=served.url, timeout=60) as http:
                asked = asyncio.ensure_future(
                    http.post("/v1/chat/completions", json=completion(QUESTION, stream=stream))
                )
                assert await asyncio.to_thread(slow.begun.wait, 30)
                asked.cancel()

        asyncio.run(leave())
        assert slow.canceled.wait(1)


def test_an_agent_that_leaves_ends_its_search_within_a_second(noted):
    slow = Slow()
    with GraphRAG(noted, slow) as rag, serve(rag) as served:

        async def leave() -> None:
            async with served.mcp() as client:
                asked = asyncio.ensure_future(client.call_tool("ask", {"question": "Ada?", "method": "local"}))
                assert await asyncio.to_thread(slow.begun.wait, 30)
                asked.cancel()

        asyncio.run(leave())
        assert slow.canceled.wait(1)


def test_a_search_ends_at_its_time_limit_and_the_first_byte_comes_before(noted):
    with GraphRAG(noted, Slow()) as rag, serve(rag, seconds=1) as served:
        with served.http() as http:
            assert http.post("/v1/chat/completions", json=completion(QUESTION)).status_code == 504
        first, last = served.chunks(question=QUESTION)
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert "timeout" in last["error"]["message"]
