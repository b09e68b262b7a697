"""Reranking models over real HTTP: providers' protocols, the ledger, prices, budget and faults."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.llm import provider
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.limits import Budget, Limits
from graphrag_assets.llm.model_errors import BudgetExceeded, CircuitOpen, RetriesExhausted
from graphrag_assets.llm.model_options import LimitOptions, ModelOptions
from graphrag_assets.llm.rerank import RerankModel
from tests.openai_server import OpenAIServer, running

QUERY = "the cable"
DOCUMENTS = ["a ship on the sea", "the cable broke", "nothing"]
COHERE, JINA = "cohere/rerank-v3.5", "jina_ai/jina-reranker-v2-base-multilingual"


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with running(slow_seconds=2.0) as server:
        yield server


def reranker(server: OpenAIServer, folder: Path, model: str = COHERE, budget: float | None = None) -> RerankModel:
    limits = Limits(LimitOptions(max_retries=1, backoff_seconds=0.01))
    options = ModelOptions(model, server.url, "key", timeout=0.5)
    return RerankModel(options, Ledger(folder / "ledger.db"), limits, Budget(budget))


def order(model: RerankModel) -> list[int]:
    return asyncio.run(model.rerank(QUERY, DOCUMENTS))[0]


@pytest.mark.parametrize(
    ("model", "route", "cost"),
    [
        (COHERE, "/v2/rerank", 0.002),  # dollars per query
        (JINA, "/v1/rerank", 8 * 0.05 / 1e6),  # per million tokens
        ("infinity/bge-small", "/v1/rerank", 0.0),
        ("hosted_vllm/BAAI/bge-reranker-v2-m3", "/v1/rerank", 0.0),
    ],
)
def test_documents_are_ordered_once_and_paid_for_once(server, tmp_path, model, route, cost) -> None:
    sent = len(server.requests)
    found, paid = asyncio.run(reranker(server, tmp_path, model).rerank(QUERY, DOCUMENTS))
    assert found == [1, 0, 2]
    assert paid.calls == 1
    assert paid.cost_usd == pytest.approx(cost)
    assert server.requests[-1].route.endswith(route)
    assert server.requests[-1].body["documents"] == DOCUMENTS
    again, free = asyncio.run(reranker(server, tmp_path, model).rerank(QUERY, DOCUMENTS))
    assert (again, free.calls, free.cost_usd, len(server.requests) - sent) == (found, 0, 0.0, 1)
    entries = Ledger(tmp_path / "ledger.db").frame()
    assert entries.select("kind", "task", "provider").row(0) == ("rerank", "rerank", model.partition("/")[0])
    assert entries["cost_usd"].sum() == pytest.approx(cost)


def test_identical_requests_in_flight_are_sent_once(server, tmp_path) -> None:
    model, sent = reranker(server, tmp_path), len(server.requests)

    async def both() -> Any:
        return await asyncio.gather(*(model.rerank(QUERY, DOCUMENTS) for _ in range(2)))

    (first, paid), (second, free) = asyncio.run(both())
    assert first == second == [1, 0, 2]
    assert (paid.calls + free.calls, len(server.requests) - sent) == (1, 1)


@pytest.mark.parametrize("fault", ["500", "slow", "closed", "malformed-body", "429", "no-scores"])
def test_a_passing_fault_is_retried(server, tmp_path, fault) -> None:
    server.fail_next(fault)
    assert order(reranker(server, tmp_path)) == [1, 0, 2]


@pytest.mark.parametrize("model", [COHERE, JINA])
def test_documents_without_a_valid_score_are_left_out(server, tmp_path, model) -> None:
    server.fail_next("fewer-scores", "strange-scores")
    assert order(reranker(server, tmp_path, model)) == [1]
    (tmp_path / "other").mkdir()
    assert order(reranker(server, tmp_path / "other", model)) == [1, 0, 2]


def test_what_does_not_pass_is_an_error_with_its_remedy(server, tmp_path) -> None:
    server.fail_next("no-scores", "500", "401")
    with pytest.raises(RetriesExhausted, match="did not answer in 2 attempts"):
        order(reranker(server, tmp_path))
    with pytest.raises(CircuitOpen, match="Check the API key"):
        order(reranker(server, tmp_path))
    with pytest.raises(CircuitOpen, match="Unsupported provider"):
        order(reranker(server, tmp_path, "openai/my-reranker"))
    with pytest.raises(BudgetExceeded):
        order(reranker(server, tmp_path, budget=0.001))


@pytest.mark.parametrize(
    ("model", "reranks"),
    [
        (COHERE, True),
        (JINA, True),
        ("together_ai/Salesforce/Llama-Rank-V1", True),  # by litellm's table alone
        ("infinity/anything", True),
        ("hosted_vllm/BAAI/bge-reranker-v2-m3", True),
        ("openai/gpt-4.1-nano", False),
        ("ollama_chat/llama3.1", False),
    ],
)
def test_reranking_models_are_told_from_chat_models(model, reranks) -> None:
    assert provider.is_reranker(model) is reranks
