"""Replies that no honest server sends: each is a model error within its deadline, or a valid answer; nothing is lost.

To add one, add a line to `CHATS` or `VECTORS`.
"""

import asyncio
import base64
import json
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.limits import Budget, Limits
from graphrag_assets.llm.model_errors import ModelError
from graphrag_assets.llm.model_options import ChatRequest, EmbeddingOptions, LimitOptions, ModelOptions, PriceOptions
from tests.openai_server import OpenAIServer, running

LIMITS = LimitOptions(backoff_seconds=0.01, max_retries=2, circuit_failures=100, retry_after_max_seconds=0.05)


@pytest.fixture
def liar() -> Iterator[OpenAIServer]:
    with running() as server:
        yield server


def tell(liar: OpenAIServer, body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
    """Let the server send a reply to every request."""
    reply = status, dict(headers or {}), json.dumps(body).encode()
    liar.replace = lambda _: reply


TOKENS = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}


def chat(content: object = "An answer.", usage: object = TOKENS, **more: object) -> dict:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    envelope = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    return envelope | {"choices": [choice], "usage": usage} | more


CHATS: dict[str, tuple[int, dict[str, str], object]] = {
    "no choices": (200, {}, chat(choices=[])),
    "choices an object": (200, {}, chat(choices={})),
    "message null": (200, {}, chat(choices=[{"index": 0, "message": None, "finish_reason": "stop"}])),
    "content an object": (200, {}, chat(content={"a": 1})),
    "null": (200, {}, None),
    "a list": (200, {}, []),
    "usage of 10^308 tokens": (200, {}, chat(usage={"prompt_tokens": 1e308, "completion_tokens": 1e308})),
    "an error with status 200": (200, {}, {"error": {"message": "no"}}),
    "an error that is a string": (500, {}, {"error": "no"}),
    "status 429 forever": (429, {"Retry-After": "inf"}, {"error": {"message": "slow down"}}),
    "status 429 for no number": (429, {"Retry-After": "nan"}, {"error": {"message": "slow down"}}),
    "status 204": (204, {}, {}),
    "status 302 to itself": (302, {"Location": "/v1/chat/completions"}, {}),
    "status 418": (418, {}, {"error": {"message": "a teapot"}}),
}
USAGES: dict[str, object] = {
    "10^30 tokens": {"prompt_tokens": 10**30, "completion_tokens": 10**30, "total_tokens": 10**30},
    "negative tokens": {"prompt_tokens": -5000, "completion_tokens": -5000, "total_tokens": -10000},
    "no usage": {},
    "cached tokens without end": TOKENS | {"prompt_tokens_details": {"cached_tokens": 10**12}},
    "endless reasoning": TOKENS | {"completion_tokens_details": {"reasoning_tokens": 10**12}},
}
REQUEST = ChatRequest(task="extract", messages=({"role": "user", "content": "Who?"},))


def chat_model(
    liar: OpenAIServer,
    folder: Path,
    budget: Budget | None = None,
    name: str = "m",
    prices: PriceOptions = PriceOptions(1.0, 1.0),  # noqa: B008 - frozen
) -> ChatModel:
    options = ModelOptions(f"openai/{name}", base_url=liar.url, api_key="none", timeout=5, prices=prices)
    return ChatModel(options, Ledger(folder / "ledger.db"), Limits(LIMITS), budget)


def run(work: Coroutine) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60.0))  # of a hang: no reply below takes a second


@pytest.mark.parametrize("lie", CHATS)
def test_a_chat_reply_that_is_none_is_an_error_and_nothing_is_stored(liar, tmp_path, lie):
    status, headers, body = CHATS[lie]
    tell(liar, body, status, headers)
    model = chat_model(liar, tmp_path)
    with pytest.raises(ModelError) as refused:
        run(model.complete(REQUEST))
    assert "database" not in str(refused.value)
    assert asyncio.run(model.ledger.get(model.key(REQUEST))) is None


@pytest.mark.parametrize(("model", "prices"), [("m", PriceOptions(1.0, 1.0)), ("gpt-4.1-mini", PriceOptions())])
@pytest.mark.parametrize("lie", USAGES)
def test_usage_that_cannot_be_is_counted_here_and_the_answer_is_kept(liar, tmp_path, lie, model, prices):
    """Also with the prices of litellm's table, which count the details of a usage."""
    tell(liar, chat(usage=USAGES[lie], model=model))
    budget = Budget(limit_usd=1.0)
    answer = run(chat_model(liar, tmp_path, budget, model, prices).complete(REQUEST))
    assert answer.text == "An answer."
    assert 0 < answer.usage.prompt_tokens < 100
    assert answer.usage.cached_tokens == 0
    assert 0 < budget.spent < 0.001


def test_half_a_character_is_replaced_in_an_answer(liar, tmp_path):
    tell(liar, chat("\ud800 hi"))
    assert run(chat_model(liar, tmp_path).complete(REQUEST)).text == "? hi"


def vectors(*rows: object, **more: object) -> dict:
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return {"object": "list", "data": data, "model": "e", "usage": {"prompt_tokens": 4, "total_tokens": 4}} | more


GOOD = [0.6, 0.8]
VECTORS: dict[str, object] = {
    "one too many": vectors(GOOD, GOOD, GOOD),
    "one index twice": vectors(data=[{"index": 0, "embedding": GOOD}, {"index": 0, "embedding": GOOD}]),
    "a foreign index": vectors(data=[{"index": 0, "embedding": GOOD}, {"index": 7, "embedding": GOOD}]),
    "nested": vectors([GOOD], [GOOD]),
    "null": vectors(None, None),
    "other lengths": vectors(GOOD, [1.0]),
    "zero": vectors([0.0, 0.0], GOOD),
    "not a number": vectors([float("nan"), 1.0], GOOD),
    "10^300": vectors([1e300, 1.0], GOOD),
    "base64 of three bytes": vectors(base64.b64encode(b"abc").decode(), base64.b64encode(b"abc").decode()),
    "10^400": vectors([10**400, 1], [1, 10**400]),
}


@pytest.mark.parametrize("lie", VECTORS)
def test_vectors_that_are_none_are_an_error_and_nothing_is_stored(liar, tmp_path, lie):
    tell(liar, VECTORS[lie])
    options = EmbeddingOptions("openai/e", base_url=liar.url, api_key="none", timeout=5)
    model = EmbeddingModel(options, Ledger(tmp_path / "ledger.db"), Limits(LIMITS))
    with pytest.raises(ModelError):
        run(model.embed(["one text", "another text"]))
    assert model.ledger.frame().is_empty()


def test_a_stream_that_only_keeps_its_connection_is_given_up(tmp_path):
    piece = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    piece |= {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "An "}, "finish_reason": None}]}

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        writer.write(f"data: {json.dumps(piece)}\n\n".encode())
        while not writer.is_closing():
            writer.write(b": ping\n\n")
            await asyncio.sleep(0.1)

    async def read() -> None:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        options = ModelOptions("openai/m", base_url=address, api_key="none", timeout=1, prices=PriceOptions(1.0, 1.0))
        model = ChatModel(options, Ledger(tmp_path / "ledger.db"), Limits(LIMITS))
        async for _ in model.stream(REQUEST):
            pass

    with pytest.raises(ModelError, match="interrupted"):
        asyncio.run(asyncio.wait_for(read(), 30))


SECRET = "planted/provider=secret+0123"
ECHOES = {
    "the key is wrong": (401, {"error": {"message": f"Incorrect API key provided: {SECRET}"}}),
    "control characters": (400, {"error": {"message": f"temperature \x1b]0;owned\x07 \x1b[2J {SECRET} is refused"}}),
    "the server fails": (500, {"error": {"message": "x" * 490 + f" {SECRET}"}}),
    "an answer that is no choice": (200, {"choices": SECRET}),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_no_echo_of_a_server_shows_the_key_of_the_providers_variable_or_controls_the_terminal(
    liar, tmp_path, monkeypatch, caplog, echo
):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    status, body = ECHOES[echo]
    tell(liar, body, status)
    options = {"base_url": liar.url, "timeout": 5, "prices": PriceOptions(1.0, 1.0)}
    chat = ChatModel(ModelOptions("openai/m", **options), Ledger(tmp_path / "ledger.db"), Limits(LIMITS))
    embedder = EmbeddingModel(EmbeddingOptions("openai/m", **options), chat.ledger, Limits(LIMITS))
    for call in (chat.complete(REQUEST), embedder.embed(["a text"])):
        with pytest.raises(ModelError) as refused:
            run(call)
        said = str(refused.value) + caplog.text
        assert "planted" not in said
        assert "\x1b" not in said
