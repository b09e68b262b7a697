"""A server on loopback: uvicorn in a thread, on a free port."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import httpx2
import pytest
import uvicorn
from mcp import Client as MCPClient
from mcp.client.streamable_http import streamable_http_client

from graphrag_assets.extras.server.access import Access, Client
from graphrag_assets.extras.server.app import make_app
from graphrag_assets.extras.server.searches import Searches
from graphrag_assets.query import GraphRAG

QUESTION = "Who commanded the Great Eastern in 1865?"


@dataclass(frozen=True)
class Served:
    """A running server: its address, and what it runs."""

    url: str
    searches: Searches

    def http(self, token: str = "", **headers: str) -> httpx.Client:
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=given | headers, timeout=60)

    def chunks(self, token: str = "", question: str = QUESTION, method: str = "local", **metadata: Any) -> list[Any]:
        """The chunks by which the page is answered."""
        with self.http(token) as http:
            response = http.post("/v1/chat/completions", json=completion(question, method, stream=True, **metadata))
        assert response.status_code == 200, response.text
        *chunks, done = (line[6:] for line in response.text.splitlines() if line.startswith("data: "))
        assert done == "[DONE]"
        return [json.loads(chunk) for chunk in chunks]

    def answer(self, *args: str, **options: Any) -> dict[str, Any]:
        """What the page shows of an answer."""
        (answer,) = (chunk["graphrag"] for chunk in self.chunks(*args, **options) if "graphrag" in chunk)
        return answer

    @contextlib.asynccontextmanager
    async def mcp(self, token: str = "", **options: Any) -> Any:
        """The SDK's own client."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            MCPClient(streamable_http_client(f"{self.url}/mcp", http_client=http), **options) as client,
        ):
            yield client


def completion(question: str, method: str = "local", stream: bool = False, **metadata: Any) -> dict[str, Any]:
    """The body of a request at `/v1/chat/completions`."""
    messages = [{"role": "user", "content": question}]
    return {"model": f"graphrag-{method}", "messages": messages, "stream": stream, "metadata": metadata}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def serve(rag: GraphRAG, clients: Sequence[Client] = (), **options: Any) -> Iterator[Served]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    searches = Searches(rag, Access(clients, url), **options)
    app = make_app(searches, "127.0.0.1", port, [])
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.02)
    try:
        yield Served(url, searches)
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def sample_server(sample_index) -> Iterator[Served]:
    """The sample corpus, without tokens."""
    with GraphRAG(sample_index.root / "index") as rag, serve(rag) as served:
        yield served
