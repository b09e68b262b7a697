"""Providers on the wire: Azure OpenAI, Ollama, vLLM, Google Vertex AI. A local server speaks for each."""

import json
import sys

import pytest

from graphrag_assets.llm.model_errors import CircuitOpen
from tests.llm.conftest import Extraction, ask, run

ADA = json.dumps({"entities": [{"title": "Ada", "type": "PERSON", "strength": 3}]})
PARAMETERS = json.dumps({"seed": 1, "num_ctx": 8192})


def test_azure_has_its_deployments_api_version_and_key(lab, monkeypatch):
    monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")
    azure = {"base_url": lab.server.url.removesuffix("/v1"), "api_key": "azure-key"}
    answer = run(lab.chat(model="azure/my-chat", parameters='{"seed": 1}', **azure).complete(ask(model=Extraction)))
    assert answer.parsed.entities
    assert run(lab.embedding(model="azure/my-embedding", **azure).embed(["one", "two"])).shape == (2, 32)
    chat, embedding = lab.server.requests
    assert chat.path == "/openai/deployments/my-chat/chat/completions?api-version=2024-10-21"
    assert embedding.path == "/openai/deployments/my-embedding/embeddings?api-version=2024-10-21"
    assert {request.headers["api-key"] for request in (chat, embedding)} == {"azure-key"}
    assert (chat.body["seed"], chat.body["response_format"]["type"]) == (1, "json_schema")


def test_ollama_by_its_own_protocol(lab):
    """Its replies are as docs/api.md of Ollama has them."""
    reply = {"model": "llama3.2", "created_at": "2024-01-01T00:00:00Z", "done": True, "done_reason": "stop"}
    reply |= {"message": {"role": "assistant", "content": ADA}, "prompt_eval_count": 11, "eval_count": 7}
    vectors = {"model": "nomic", "embeddings": [[3.0, 4.0], [0.0, 1.0]], "prompt_eval_count": 2}

    def ollama(body):
        known = vectors if "input" in body else reply if "messages" in body else {}
        return 200, {}, json.dumps(known).encode()

    lab.server.replace = ollama
    address = {"base_url": lab.server.url.removesuffix("/v1")}
    answer = run(
        lab.chat(model="ollama_chat/llama3.2", parameters=PARAMETERS, **address).complete(ask(model=Extraction))
    )
    assert (answer.parsed.entities[0].title, answer.usage.prompt_tokens, answer.usage.completion_tokens) == (
        "Ada",
        11,
        7,
    )
    found = run(lab.embedding(model="ollama/nomic", **address).embed(["one", "two"]))
    assert found.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 1.0]]
    (chat,) = [request for request in lab.server.requests if request.path == "/api/chat"]
    assert chat.body["options"] == {"temperature": 0.0, "seed": 1, "num_ctx": 8192}
    assert chat.body["format"]["properties"].keys() == {"entities"}  # the schema itself
    assert [r.body["input"] for r in lab.server.requests if r.path == "/api/embed"] == [["one", "two"]]


def test_a_missing_package_of_a_provider_stops_at_the_first_attempt_and_says_so(lab, monkeypatch):
    monkeypatch.setenv("VERTEXAI_PROJECT", "without-package")
    monkeypatch.setenv("VERTEXAI_LOCATION", "europe-west1")
    monkeypatch.setitem(sys.modules, "google.auth", None)  # so that its import fails
    chat = lab.chat(model="vertex_ai/gemini-2.5-flash", base_url=lab.server.url.removesuffix("/v1"))
    with pytest.raises(CircuitOpen, match=r"Install the missing package\."):
        run(chat.complete(ask()))
    assert lab.server.requests == []
