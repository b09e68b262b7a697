"""The applications under examples/: their types, and what they do on the sample corpus."""

import importlib.util
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from types import ModuleType

import pytest
import uvicorn

from graphrag_assets.query import GraphRAG

from .conftest import Project
from .environments import ROOT

EXAMPLES = ROOT / "examples" / "questions"
QUESTION = "Who commanded the Great Eastern in 1865?"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def service(sample_index: Project) -> Iterator[str]:
    example = module("service")
    rights = {**example.RIGHTS, "dan": ["deleted", "1-beginnings"], "fay": ["deleted"]}
    made = example.application(GraphRAG(sample_index.root / "index"), rights)
    server = uvicorn.Server(uvicorn.Config(made, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(60)
    assert not thread.is_alive()


def get(url: str, user: str, **query: str) -> list[dict]:
    request = urllib.request.Request(f"{url}?{urllib.parse.urlencode(query)}", headers={"X-User": user})
    with urllib.request.urlopen(request, timeout=120) as response:
        return [json.loads(line) for line in response]


@pytest.mark.extended
def test_the_service_streams_within_the_rights_of_the_user(service: str) -> None:
    *pieces, last = get(f"{service}/ask", "ann", question=QUESTION)
    assert "James Anderson" in "".join(piece["piece"] for piece in pieces)
    assert {"document", "start", "end", "quote"} == set(last["citations"][0])
    for user in ("ben", "eve", "nobody"):
        assert "Anderson" not in json.dumps(get(f"{service}/ask", user, question=QUESTION))
    (found,) = get(f"{service}/passages", "ann", question=QUESTION)
    assert len(found) == 5
    for user in ("eve", "fay"):
        assert get(f"{service}/passages", user, question=QUESTION) == [[]]
    assert get(f"{service}/passages", "dan", question=QUESTION) == get(f"{service}/passages", "ben", question=QUESTION)
    with pytest.raises(urllib.error.HTTPError, match="400"):
        get(f"{service}/ask", "ann")
