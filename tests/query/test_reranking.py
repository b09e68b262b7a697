"""Reranking of passages by a model over real HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG
from tests.limits import limit_calls
from tests.openai_server import OpenAIServer, running
from tests.query.modeled import says, user_message

QUESTION = "Who commanded the Niagara near the ice?"
PENGUINS = 5  # the text unit


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with running(relevance=lambda query, document: float("Penguins" in document)) as server:
        yield server


@pytest.fixture(params=["cohere/rerank-v3.5", "hosted_vllm/bge-reranker", "infinity/mxbai", "openai/test-model"])
def rag(
    request: pytest.FixtureRequest,
    server: OpenAIServer,
    index_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> GraphRAG:
    """Reranks by a reranking model, or by a chat model, which here names one passage twice and two that do not exist."""
    limit_calls(monkeypatch, max_retries=0)
    settings = {"GRAPHRAG_RERANK_MODEL": request.param, "GRAPHRAG_DATA": str(tmp_path)}
    for vendor in ("COHERE", "HOSTED_VLLM", "INFINITY", "OPENAI"):
        settings |= {f"{vendor}_API_BASE": server.url, f"{vendor}_API_KEY": "key"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    def order(body: dict) -> dict:
        assert "Question: Who commanded the Niagara" in user_message(body)
        listed = user_message(body).split("\n")
        (place,) = (n for n, line in enumerate(listed) if line.startswith("Penguins"))
        number = int(listed[place - 1].split("]")[0].removeprefix("["))
        return {"order": [99, number, number, 0]}

    server.content = says(PassageOrder=order)
    return GraphRAG(index_file)


def units(frame) -> list[int]:
    return frame["human_readable_id"].to_list()


def test_the_best_passages_come_first_in_retrieve_basic_and_local(rag, server, index_file, monkeypatch) -> None:
    found = {
        "retrieve": units(rag.retrieve(QUESTION, k=3)),
        "basic": units(rag.context("basic", QUESTION, k=3).frames["sources"]),
        "local": units(rag.context("local", QUESTION).frames["sources"]),
    }
    answer = rag.basic(QUESTION, k=3)
    words = units(rag.retrieve(QUESTION, k=3, method="words"))
    monkeypatch.delenv("GRAPHRAG_RERANK_MODEL")
    plain = GraphRAG(index_file)
    before = {
        "retrieve": units(plain.retrieve(QUESTION)),
        "basic": units(plain.context("basic", QUESTION).frames["sources"]),
        "local": units(plain.context("local", QUESTION).frames["sources"]),
    }
    for name, order in before.items():
        moved = [PENGUINS, *(unit for unit in order if unit != PENGUINS)]
        assert order[0] != PENGUINS
        assert found[name] == (moved if name == "local" else moved[:3])
    assert words == units(plain.retrieve(QUESTION, k=3, method="words"))
    assert answer.usage["rerank"].calls == 0  # in the ledger since `context`
    assert len(server.requests) <= 3  # one for each ranking that differs


def test_a_failure_leaves_the_ranking_and_is_recorded(rag, server, index_file, monkeypatch) -> None:
    server.fail_next("500")
    answer = rag.local(QUESTION)
    assert [failure.part for failure in answer.errors] == ["rerank"]
    assert "500" in answer.errors[0].error
    monkeypatch.delenv("GRAPHRAG_RERANK_MODEL")
    assert units(answer.context["sources"]) == units(GraphRAG(index_file).local(QUESTION).context["sources"])
    assert rag.local(QUESTION).usage["rerank"].calls == 1


def test_only_passages_inside_the_filter_are_sent(rag, server) -> None:
    rag.retrieve(f"{QUESTION} The oil, the buyers?", documents=["Document 1", "Document 2"])
    sent = str(server.requests[-1].body)
    assert "Penguins were seen" in sent
    assert "Agamemnon" not in sent.replace("Who commanded", "")
