"""Clients that leave, searches that take too long, and many streams while publications change."""

import asyncio
import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from graphrag_assets.contracts.answering import PLAIN, AnswerOptions, BaseAnswerer, Evidence, Reply
from graphrag_assets.query import GraphRAG
from graphrag_assets.testing import index_of
from tests.server.conftest import serve


class Slow(BaseAnswerer):
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


NOTE = {"note": "Ada Lovelace met Charles Babbage in London."}
ASK = {"question": "Whom did Ada Lovelace meet?", "method": "local"}
COMPLETION = {"model": "graphrag-local", "messages": [{"role": "user", "content": "Whom did Ada Lovelace meet?"}]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/query/stream", ASK),
        ("/v1/chat/completions", COMPLETION),
        ("/v1/chat/completions", COMPLETION | {"stream": True}),
    ],
)
def test_a_client_that_leaves_ends_its_search_within_a_second(path, body):
    slow = Slow()
    with index_of(NOTE, slow) as rag, serve(rag) as served:

        async def leave() -> None:
            async with httpx.AsyncClient(base_url=served.url, timeout=60) as http:
                asked = asyncio.ensure_future(http.post(path, json=body))
                assert await asyncio.to_thread(slow.begun.wait, 30)
                asked.cancel()

        asyncio.run(leave())
        assert slow.canceled.wait(1)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_that_leaves_ends_its_search_within_a_second(mode):
    slow = Slow()
    with index_of(NOTE, slow) as rag, serve(rag) as served:

        async def leave() -> None:
            async with served.mcp(mode=mode) as client:
                asked = asyncio.ensure_future(client.call_tool("ask", {"question": "Ada?", "method": "local"}))
                assert await asyncio.to_thread(slow.begun.wait, 30)
                asked.cancel()

        asyncio.run(leave())
        assert slow.canceled.wait(1)


def test_a_search_ends_at_its_time_limit_and_the_first_byte_comes_before():
    with index_of(NOTE, Slow()) as rag, serve(rag, seconds=1) as served:
        with served.http() as http:
            assert http.post("/v1/chat/completions", json=COMPLETION).status_code == 504
        (first, _), *_, (name, error), _ = served.events(**ASK)
    assert (first, name) == ("status", "error")
    assert "timeout" in error["message"]


@pytest.mark.extended
@pytest.mark.parametrize("streams", [16, pytest.param(64, marks=pytest.mark.long)])
def test_streams_over_changing_publications_are_each_of_one_publication(start_with, streams):
    """Each publication has its own number in all its texts: an answer that mixed two would show both."""
    project = start_with({"a.txt": _text(1)})
    published = threading.Event()
    with GraphRAG(project.root) as rag, serve(rag) as served, ThreadPoolExecutor(streams) as pool:

        def ask(_: int) -> list[dict[str, Any]]:
            answers, is_last = [], False
            while not is_last:
                is_last = published.is_set()
                answers.append(served.events(question="Who commanded the Great Eastern?")[-2][1])
                time.sleep(1)  # the publications need the processors, too
            return answers

        asked = pool.map(ask, range(streams))
        try:
            for number in (2, 3):
                project.write("a.txt", _text(number))
                project.index_all()
        finally:
            published.set()
        answers = [answer for several in asked for answer in several]
    assert len(answers) >= 2 * streams
    for answer in answers:
        assert len(set(re.findall(r"Zephyr\d", json.dumps(answer)))) == 1, answer
    assert len({answer["publication"] for answer in answers}) > 1


def _text(number: int) -> str:
    return f"Captain Anderson of Zephyr{number} commanded the Great Eastern. Captain Anderson met Cyrus Field at Zephyr{number}."
