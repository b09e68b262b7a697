"""Many streams at once while publications change, and clients that leave."""

import asyncio
import json
import threading

import httpx
import pytest
from mcp import Client

from graphrag_assets.contracts.answering import PLAIN, AnswerOptions, BaseAnswerer, Evidence, Reply
from graphrag_assets.extras.server import draining
from graphrag_assets.query import GraphRAG
from graphrag_assets.testing import index_of
from tests.server.conftest import serve


class Slow(BaseAnswerer):
    """Answers after a while, and counts what it began and what was canceled."""

    model = "slow"

    def __init__(self, seconds: float) -> None:
        self.seconds, self.begun, self.canceled, self.done = seconds, threading.Event(), threading.Event(), 0

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        self.begun.set()
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.canceled.set()
            raise
        self.done += 1
        return Reply("At last.")


NOTE = {"note": "Ada Lovelace met Charles Babbage in London."}
ASK = {"question": "Whom did Ada Lovelace meet?", "method": "local"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/query", ASK),
        ("/api/query/stream", ASK),
        ("/v1/chat/completions", {"model": "graphrag-local", "messages": [{"role": "user", "content": "Ada?"}]}),
        (
            "/v1/chat/completions",
            {"model": "graphrag-local", "stream": True, "messages": [{"role": "user", "content": "Ada?"}]},
        ),
    ],
)
def test_a_client_that_leaves_ends_its_search_within_a_second(path, body):
    slow = Slow(60)
    with index_of(NOTE, slow) as rag, serve(rag) as served:

        async def leave() -> None:
            async with httpx.AsyncClient(base_url=served.url) as http:
                asked = asyncio.ensure_future(_read(http, path, body))
                assert await asyncio.to_thread(slow.begun.wait, 30)
                asked.cancel()

        asyncio.run(leave())
        assert slow.canceled.wait(1)
        with served.http() as http:
            assert "graphrag_searches_running 0.0" in http.get("/metrics").text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_that_leaves_ends_its_search_within_a_second(mode):
    slow = Slow(60)
    with index_of(NOTE, slow) as rag, serve(rag) as served:

        async def leave() -> None:
            async with Client(f"{served.url}/mcp", mode=mode) as client:
                asked = asyncio.ensure_future(client.call_tool("ask", {"question": "Ada?", "method": "local"}))
                assert await asyncio.to_thread(slow.begun.wait, 30)
                asked.cancel()

        asyncio.run(leave())
        assert slow.canceled.wait(1)


async def _read(http: httpx.AsyncClient, path: str, body: dict) -> None:
    async with http.stream("POST", path, json=body) as response:
        async for _ in response.aiter_lines():
            pass


def test_a_search_ends_at_its_time_limit_and_the_first_byte_comes_before(sample_index):
    slow = Slow(60)
    with index_of(NOTE, slow) as rag, serve(rag, seconds=1) as served, served.http() as http:
        assert http.post("/api/query", json=ASK).status_code == 504
        with http.stream("POST", "/api/query/stream", json=ASK) as response:
            lines = [line for line in response.iter_lines() if line]
    assert lines[0] == "event: status"
    assert "timeout" in next(line for line in lines if "error" in line and line.startswith("data"))


def test_more_searches_than_are_allowed_at_once_wait(sample_index):
    slow = Slow(0.2)
    with index_of(NOTE, slow) as rag, serve(rag, at_once=2) as served:

        async def ask_all() -> list[int]:
            async with httpx.AsyncClient(base_url=served.url, timeout=60) as http:
                answers = await asyncio.gather(*(http.post("/api/query", json=ASK) for _ in range(8)))
            return [answer.status_code for answer in answers]

        assert asyncio.run(ask_all()) == [200] * 8
    assert slow.done == 8


@pytest.mark.extended
@pytest.mark.parametrize("streams", [16, pytest.param(64, marks=pytest.mark.long)])
def test_streams_over_changing_publications_are_each_of_one_publication(start_with, streams):
    """Each publication has its own number in all its texts: an answer that mixed two would show both."""
    project = start_with({"a.txt": _text(1)})
    with GraphRAG(project.root) as rag, serve(rag) as served:
        published = threading.Event()

        def publish() -> None:
            for number in (2, 3):
                project.write("a.txt", _text(number))
                project.index_all()
            published.set()

        publisher = threading.Thread(target=publish)
        publisher.start()
        try:
            answers = asyncio.run(_ask_streams(served.url, streams, published))
        finally:
            publisher.join()
    assert len(answers) >= 2 * streams
    for answer in answers:
        marks = {word for word in json.dumps(answer).replace('"', " ").split() if word.startswith("Zephyr")}
        assert len({mark.rstrip(".,") for mark in marks}) == 1, marks
    assert len({answer["publication"] for answer in answers}) > 1


def _text(number: int) -> str:
    return f"Captain Anderson of Zephyr{number} commanded the Great Eastern. Captain Anderson met Cyrus Field at Zephyr{number}."


async def _ask_streams(url: str, streams: int, until: threading.Event) -> list[dict]:
    """The answers of so many streams at a time, which ask again until the event, and once more after it."""
    answers: list[dict] = []

    async def ask(http: httpx.AsyncClient) -> None:
        is_last = False
        while not is_last:
            is_last = until.is_set()
            body = {"question": "Who commanded the Great Eastern?", "method": "local"}
            async with http.stream("POST", "/api/query/stream", json=body) as response:
                assert response.status_code == 200
                name = ""
                async for line in response.aiter_lines():
                    name = line[7:] if line.startswith("event: ") else name
                    assert name != "error", line
                    if line.startswith("data: ") and name == "answer":
                        answers.append(json.loads(line[6:]))
            await asyncio.sleep(1)  # the publications need the processors, too

    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as http:
        await asyncio.gather(*(ask(http) for _ in range(streams)))
    return answers


def test_clients_of_open_streams_read_why_the_server_ends(sample_index, monkeypatch):
    monkeypatch.setattr(draining, "GRACE_SECONDS", 0.2)
    slow, read = Slow(60), list[str]()

    def ask(url: str) -> None:
        read.append(httpx.post(f"{url}/api/query/stream", json=ASK, timeout=60).text)

    with index_of(NOTE, slow) as rag:
        with serve(rag) as served:
            asked = threading.Thread(target=ask, args=(served.url,))
            asked.start()
            assert slow.begun.wait(30)
        asked.join(10)
    (text,) = read
    assert "event: error" in text
    assert "was closed before the answer was complete" in text
