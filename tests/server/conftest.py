"""A server on loopback: uvicorn in a thread, on a free port."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvicorn

from graphrag_assets.extras.server.access import Client, clients_of
from graphrag_assets.extras.server.app import make_app, server_searches
from graphrag_assets.extras.server.draining import DrainingServer
from graphrag_assets.extras.server.searches import Searches
from graphrag_assets.query import GraphRAG

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Served:
    """A running server: its address, and what it runs."""

    url: str
    searches: Searches

    def http(self, token: str = "", **headers: str) -> httpx.Client:
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=given | headers, timeout=60)


@contextlib.contextmanager
def serve(rag: GraphRAG, clients: Sequence[Client] = (), **options: Any) -> Iterator[Served]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    limits = {name: options.pop(name) for name in ("seconds", "at_once") if name in options}
    searches = server_searches(rag, list(clients), url, **limits)
    app = make_app(searches, "127.0.0.1", port, [], **options)
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=5)
    server = DrainingServer(config, rag)
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
    """The sample corpus, without tokens, with SQL."""
    with GraphRAG(sample_index.root / "index") as rag, serve(rag, allow_sql=True) as served:
        yield served


@pytest.fixture
def tokens() -> Callable[[str], list[Client]]:
    return clients_of
