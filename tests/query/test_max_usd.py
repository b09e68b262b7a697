"""`max_usd`: what one question may cost. The test model costs one dollar per token."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.embedded import DIMENSIONS
from graphrag_assets.errors import QueryError
from graphrag_assets.llm.model_errors import PriceUnknown
from graphrag_assets.llm.model_options import PriceOptions
from graphrag_assets.query import GraphRAG
from tests.openai_server import OpenAIServer, running
from tests.query.conftest import write_index
from tests.query.modeled import chat_answerer, says, user_message
from tests.query.test_by_model import follow_ups_of, points_of
from tests.query.test_by_model import notes_of as repeated

QUESTION = "Who commanded the Niagara?"
METHODS = ("local", "global", "drift", "basic", "lazy", "planned")
PLAN = [("ship", "Which ship was commanded?"), ("answer", "Who commanded the {ship}?")]
KIND = {"kind": "theme", "reason": "It is about all."}


def values_of(body: dict[str, Any]) -> dict[str, Any]:
    """A value that cites the first text unit of the request."""
    source = re.search(r"-----Sources-----\n[^\n]*\n(\d+)\|", user_message(body))
    return {"values": [{"value": "Niagara", "statement": f"It was. [Data: Sources ({source[1]})]"}] if source else []}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    content = says(
        text=repeated,
        MapAnswer=points_of,
        DriftAnswer=follow_ups_of,
        SubQuestions={"question": QUESTION, "questions": []},
        RelevantUnits={"units": [{"id": 1, "sentences": [1]}]},
        QuestionKind=KIND,
        PlannedSteps={"steps": [{"variable": name, "kind": "find", "question": asked} for name, asked in PLAN]},
        StepValues=values_of,
    )
    with running(content=content) as server:
        yield server


@pytest.fixture
def rag(server: OpenAIServer, index_file: Path, tmp_path: Path) -> GraphRAG:
    return GraphRAG(index_file, answerer=chat_answerer(server, tmp_path))


def spent(rag: GraphRAG) -> float:
    """US dollars of all answers in the ledger, valid or not."""
    return rag.answerer.chat.ledger.spent_today()


@pytest.mark.extended
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", [repeated, lambda _: "It goes on and on. " * 5_000], ids=["short", "endless"])
def test_a_question_never_costs_more_than_its_ceiling(rag, server, method, text):
    server.content = _with_text(server.content, text)
    for max_usd in (50, 900, 2_500, 6_000, 12_000):
        before = spent(rag)
        try:
            answer = rag.search(method, f"{QUESTION} {max_usd}", max_usd=max_usd, max_context_tokens=300)
        except Exception as error:
            assert "cut off at the limit" in str(error), error  # noqa: PT017 (an answer without an end)
        else:
            assert answer.total_usage.cost <= max_usd
            assert not answer.errors or any("max_usd" in failure.error for failure in answer.errors)
        assert spent(rag) - before <= max_usd


def _with_text(content: Any, text: Any) -> Any:
    return lambda body: content(body) if "response_format" in body else text(body)


def test_what_the_ceiling_does_not_cover_is_left_out_and_told(rag):
    answer = rag.basic(QUESTION, max_usd=1)
    assert answer.answer.startswith("Captain William Hudson commanded the Niagara.")
    assert (answer.model, answer.total_usage.cost) == ("embedded/extractive", 0)
    (failure,) = answer.errors
    assert failure.part == "response"
    assert "max_usd of $1.0000 does not cover it" in failure.error
    assert "1 calls failed" in answer.confidence.reasons
    pieces = list(stream := rag.basic.stream(QUESTION, max_usd=1))
    assert "".join(pieces) == stream.result.answer == answer.answer


def test_concurrent_questions_have_ceilings_of_their_own(rag, server):
    server.latency = 0.2

    async def together() -> list[Any]:
        return await asyncio.gather(
            rag.abasic(QUESTION, max_usd=1), rag.abasic(QUESTION), rag.abasic(QUESTION, max_usd=5_000)
        )

    tight, free, roomy = asyncio.run(together())
    assert [len(answer.errors) for answer in (tight, free, roomy)] == [1, 0, 0]
    assert tight.model != free.model == roomy.model


@pytest.mark.parametrize("method", ["basic", "ask"])
def test_a_model_without_a_price_is_refused(server, index_file, tmp_path, method):
    answerer = chat_answerer(server, tmp_path)
    answerer.chat.options = replace(answerer.chat.options, prices=PriceOptions())
    with pytest.raises(PriceUnknown, match="no price is known for openai/test-model"):
        GraphRAG(index_file, answerer=answerer).search(method, QUESTION, max_usd=1)
    assert [request.task for request in server.chats] == []


def test_a_ceiling_must_be_positive(rag):
    with pytest.raises(QueryError, match="max_usd is 0; it must be more than 0 US dollars, or None"):
        rag.ask(QUESTION, max_usd=0)


@pytest.mark.extended
def test_ask_chooses_the_best_method_that_is_estimated_to_fit(rag, server):
    free = rag.ask(QUESTION, max_context_tokens=300)
    assert free.method == "global"
    prices = {price.method: price for price in free.choice.prices}
    assert prices.keys() >= set(METHODS)
    assert "instead: local $" in free.choice.estimates
    most = {method: price.maximum.cost_usd for method, price in prices.items()}
    assert most["basic"] < most["global"]
    cheaper = rag.ask(f"{QUESTION} Again?", max_usd=most["basic"] + 400, max_context_tokens=300)
    assert cheaper.choice.method != "global"
    assert "may exceed max_usd" in cheaper.choice.reason
    assert cheaper.total_usage.cost <= most["basic"] + 400
    with pytest.raises(QueryError, match=r"the cheapest method for the question, .* is estimated to cost"):
        rag.ask(f"{QUESTION} Once more?", max_usd=500, max_context_tokens=300)


@pytest.mark.extended
def test_the_price_of_each_method_bounds_what_it_costs(rag, server):
    prices = {price.method: price for price in rag.prices(QUESTION)}
    assert server.chats == []
    for method in METHODS:
        used = rag.search(method, QUESTION).total_usage
        price = prices[method]
        assert price.minimum.requests <= used.calls <= price.maximum.requests
        assert price.minimum.prompt_tokens * 0.7 <= used.prompt_tokens <= price.maximum.prompt_tokens * 1.3
    again = {price.method: price for price in rag.prices(QUESTION)}
    assert again["basic"].maximum.requests == 0  # the answer is in the ledger


def test_pricing_embeds_the_question_alone(server, tmp_path, monkeypatch):
    settings = {"DATA": str(tmp_path), "EMBEDDING_MODEL": "openai/test-embedding", "EMBEDDING_BASE_URL": server.url}
    for name, value in settings.items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    server.dimensions = DIMENSIONS
    path = write_index(tmp_path / "graphrag-1.duckdb", model="openai/test-embedding")
    GraphRAG(path, answerer=chat_answerer(server, tmp_path)).prices(QUESTION)
    assert {text for request in server.embeddings for text in request.body["input"]} == {QUESTION}


@pytest.mark.extended
def test_the_price_of_a_planned_search_covers_a_chain_that_follows_all_values(rag, server):
    price = next(price for price in rag.prices(f"{QUESTION} {{Really}}?") if price.method == "planned")
    chain = [{"variable": "v0", "kind": "find", "question": QUESTION}] + [
        {"variable": f"v{n}", "kind": "find", "question": f"{n}: {QUESTION} {{v{n - 1}}}"} for n in range(1, 6)
    ]
    answered = server.content
    values = says(
        PlannedSteps={"steps": chain},
        StepValues={"values": [{"value": f"Hudson {n}", "statement": "He did. [Data: Sources (0)]"} for n in range(9)]},
        text=answered,
    )
    server.content = values
    used = rag.planned(f"{QUESTION} {{Really}}?").total_usage
    assert used.calls == price.maximum.requests == 1 + (1 + 5 * 3) + 1
    assert used.prompt_tokens <= price.maximum.prompt_tokens * 1.3
