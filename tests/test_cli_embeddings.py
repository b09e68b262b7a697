"""`index` with an embedding server that does not take every text."""

import json

import pytest

from graphrag_assets.store.index_files import current_number
from tests.cli import run_command
from tests.limits import limit_calls
from tests.openai_server import running

DOCUMENTS = {
    "a/one.txt": "Ada Lovelace worked with Charles Babbage on the Analytical Engine in London. She wrote the notes of 1843.",
    "a/two.txt": "Mary Somerville taught Ada Lovelace in London. Somerville wrote about the planet PLUTO.",
    "a/three.txt": " ".join(f"Otto Lind repaired gauge {n} of the mill." for n in range(80)),
}


@pytest.fixture
def server(project, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "openai/test-embedding")
    limit_calls(monkeypatch, backoff_seconds=0.01, max_retries=2)
    for path, text in DOCUMENTS.items():
        project.write(path, text)
    with running() as server:
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_BASE_URL", server.url)
        yield server


def refusing(status: int, message: str, is_bad):
    refusal = status, {}, json.dumps({"error": {"message": message}}).encode()
    return lambda body: refusal if any(map(is_bad, body["input"])) else None


@pytest.mark.extended
def test_texts_that_the_server_does_not_take_are_rows_and_the_rest_is_published(project, server):
    server.replace = refusing(500, "unsupported value: NaN", lambda text: "PLUTO" in text)
    run_command("index")
    without = project.sql(
        "SELECT batch, source, error, hint FROM index_errors WHERE stage = 'embed' ORDER BY batch NULLS LAST"
    )
    (unit,) = project.sql("SELECT id FROM text_units WHERE text LIKE '%PLUTO%'")
    assert without[0][:2] == ("a", unit[0])
    assert without[0][2].startswith("a/two.txt: ")
    assert all("NaN" in error and "index --retry" in hint for _, _, error, hint in without)
    for method in ("basic", "local"):
        assert "Lovelace" in run_command("query", method, "Who worked with Charles Babbage?")
    published = current_number(project.index.settings.index_folder)
    server.requests.clear()
    run_command("index")
    assert server.requests == []
    assert current_number(project.index.settings.index_folder) == published
    server.replace = None
    run_command("index", "--retry")
    assert project.sql("SELECT count(*) FROM index_errors") == [(0,)]
    assert "PLUTO" in run_command("query", "basic", "Who wrote about the planet PLUTO?")
