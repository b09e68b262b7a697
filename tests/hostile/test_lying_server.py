"""Replies that no honest server sends: each is a model error within its deadline, or a valid answer; nothing is lost.

To add one, add a line to `CHATS` or `VECTORS`.
"""

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.limits import Budget, Limits
from graphrag_assets.llm.model_errors import ModelError
from graphrag_assets.llm.model_options import ChatRequest, EmbeddingOptions, LimitOptions, ModelOptions, PriceOptions
from tests.openai_server import OpenAIServer, running

DEADLINE = 60.0  # of a hang: no reply below takes a second
LIMITS = LimitOptions(backoff_seconds=0.01, max_retries=2, circuit_failures=100, retry_after_max_seconds=0.05)


@pytest.fixture
def liar() -> Iterator[OpenAIServer]:
    with running() as server:
        yield server


def tell(liar: OpenAIServer, body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
    """Let the server send a reply to every request."""
    reply = status, dict(headers or {}), json.dumps(body).encode()
    liar.replace = lambda _: reply


def chat(content: object = "An answer.", usage: object = None, **more: object) -> dict:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8} if usage is None else usage
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    } | more


HONEST = chat()
# name: (status, headers, body); None where a valid answer comes all the same
CHATS: dict[str, tuple[int, dict[str, str], object]] = {
    "no choices": (200, {}, chat(choices=[])),
    "choices an object": (200, {}, chat(choices={})),
    "a choice null": (200, {}, chat(choices=[None])),
    "message null": (200, {}, chat(choices=[{"index": 0, "message": None, "finish_reason": "stop"}])),
    "content null": (200, {}, chat(content=None)),
    "content an object": (200, {}, chat(content={"a": 1})),
    "null": (200, {}, None),
    "a list": (200, {}, []),
    "usage of 10^308 tokens": (200, {}, chat(usage={"prompt_tokens": 1e308, "completion_tokens": 1e308})),
    "an error with status 200": (200, {}, {"error": {"message": "no"}}),
    "an error that is a string": (500, {}, {"error": "no"}),
    "status 429 for a year": (429, {"Retry-After": "31536000"}, {"error": {"message": "slow down"}}),
    "status 429 forever": (429, {"Retry-After": "inf"}, {"error": {"message": "slow down"}}),
    "status 429 for no number": (429, {"Retry-After": "nan"}, {"error": {"message": "slow down"}}),
    "status 204": (204, {}, {}),
    "status 302 to itself": (302, {"Location": "/v1/chat/completions"}, {}),
    "status 418": (418, {}, {"error": {"message": "a teapot"}}),
    "status 599": (599, {}, {}),
}
TOKENS = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
USAGES: dict[str, object] = {
    "10^30 tokens": {"prompt_tokens": 10**30, "completion_tokens": 10**30, "total_tokens": 10**30},
    "negative tokens": {"prompt_tokens": -5000, "completion_tokens": -5000, "total_tokens": -10000},
    "no usage": {},
    "cached tokens without end": TOKENS | {"prompt_tokens_details": {"cached_tokens": 10**12}},
    "endless reasoning": TOKENS | {"completion_tokens_details": {"reasoning_tokens": 10**12}},
}
REQUEST = ChatRequest(task="extract", messages=({"role": "user", "content": "Who?"},))


def chat_model(
    liar: OpenAIServer, folder: Path, budget: Budget | None = None, name: str = "m", prices: PriceOptions | None = None
) -> ChatModel:
    prices = prices or PriceOptions(1.0, 1.0)
    options = ModelOptions(f"openai/{name}", base_url=liar.url, api_key="none", timeout=5, prices=prices)
    return ChatModel(options, Ledger(folder / "ledger.db"), Limits(LIMITS), budget)


async def within_the_deadline(work):
    return await asyncio.wait_for(work, DEADLINE)


@pytest.mark.parametrize("lie", CHATS)
def test_a_chat_reply_that_is_none_is_an_error_and_nothing_is_stored(liar, tmp_path, lie):
    status, headers, body = CHATS[lie]
    tell(liar, body, status, headers)
    model = chat_model(liar, tmp_path)
    with pytest.raises(ModelError) as refused:
        asyncio.run(within_the_deadline(model.complete(REQUEST)))
    assert "database" not in str(refused.value)
    assert asyncio.run(model.ledger.get(model.key(REQUEST))) is None


@pytest.mark.parametrize("lie", CHATS)
def test_an_honest_reply_after_a_lie_is_taken(liar, tmp_path, lie):
    status, headers, body = CHATS[lie]
    replies = iter([(status, headers, json.dumps(body).encode())])
    liar.replace = lambda _: next(replies, (200, {}, json.dumps(HONEST).encode()))
    model = chat_model(liar, tmp_path)
    try:
        answer = asyncio.run(within_the_deadline(model.complete(REQUEST)))
    except ModelError:
        assert status in (200, 204, 302, 418)  # what no retry helps
    else:
        assert answer.text == "An answer."


@pytest.mark.parametrize("lie", USAGES)
def test_usage_that_cannot_be_is_counted_here_and_the_answer_is_kept(liar, tmp_path, lie):
    tell(liar, chat(usage=USAGES[lie]))
    budget = Budget(limit_usd=1.0)
    model = chat_model(liar, tmp_path, budget)
    answer = asyncio.run(within_the_deadline(model.complete(REQUEST)))
    assert answer.text == "An answer."
    assert 0 < answer.usage.prompt_tokens < 100
    assert answer.usage.cached_tokens == 0
    assert 0 < budget.spent < 0.001
    stored = asyncio.run(model.ledger.get(model.key(REQUEST)))
    assert stored.response == "An answer."


@pytest.mark.parametrize("lie", USAGES)
def test_no_usage_makes_an_answer_cost_more_than_its_tokens_can(liar, tmp_path, lie):
    """With the prices of litellm's table, which count the details of a usage too."""
    tell(liar, chat(usage=USAGES[lie], model="gpt-4.1-mini"))
    budget = Budget(limit_usd=1.0)
    model = chat_model(liar, tmp_path, budget, "gpt-4.1-mini", PriceOptions())
    assert asyncio.run(within_the_deadline(model.complete(REQUEST))).text == "An answer."
    assert 0 < budget.spent < 0.001


def test_half_a_character_is_replaced_in_an_answer(liar, tmp_path):
    tell(liar, chat("\ud800 hi"))
    assert asyncio.run(within_the_deadline(chat_model(liar, tmp_path).complete(REQUEST))).text == "? hi"


def vectors(*rows: object, **more: object) -> dict:
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return {"object": "list", "data": data, "model": "e", "usage": {"prompt_tokens": 4, "total_tokens": 4}} | more


GOOD = [0.6, 0.8]
VECTORS: dict[str, object] = {
    "one too many": vectors(GOOD, GOOD, GOOD),
    "data null": vectors(data=None),
    "one index twice": vectors(data=[{"index": 0, "embedding": GOOD}, {"index": 0, "embedding": GOOD}]),
    "a foreign index": vectors(data=[{"index": 0, "embedding": GOOD}, {"index": 7, "embedding": GOOD}]),
    "no index": vectors(data=[{"embedding": GOOD}, {"embedding": GOOD}]),
    "nested": vectors([GOOD], [GOOD]),
    "null": vectors(None, None),
    "other lengths": vectors(GOOD, [1.0]),
    "empty": vectors([], []),
    "zero": vectors([0.0, 0.0], GOOD),
    "not a number": vectors([float("nan"), 1.0], GOOD),
    "10^300": vectors([1e300, 1.0], GOOD),
    "base64 of three bytes": vectors(base64.b64encode(b"abc").decode(), base64.b64encode(b"abc").decode()),
    "numbers as words": vectors(["1", "2"], ["3", "4"]),
    "10^400": vectors([10**400, 1], [1, 10**400]),
}


def embedding_model(liar: OpenAIServer, folder: Path) -> EmbeddingModel:
    options = EmbeddingOptions("openai/e", base_url=liar.url, api_key="none", timeout=5)
    return EmbeddingModel(options, Ledger(folder / "ledger.db"), Limits(LIMITS))


@pytest.mark.parametrize("lie", VECTORS)
def test_vectors_that_are_none_are_an_error_and_nothing_is_stored(liar, tmp_path, lie):
    tell(liar, VECTORS[lie])
    model = embedding_model(liar, tmp_path)
    with pytest.raises(ModelError):
        asyncio.run(within_the_deadline(model.embed(["one text", "another text"])))
    assert model.ledger.frame().is_empty()


@pytest.fixture
def dripping() -> Iterator[str]:
    """The address of a server that begins to stream an answer, then only keeps the connection."""
    piece = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    piece |= {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "An "}, "finish_reason": None}]}
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
            while not over.wait(0.1):
                self.wfile.write(b": ping\n\n")

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    over.set()
    server.shutdown()
    server.server_close()


def test_a_stream_that_only_keeps_its_connection_is_given_up(dripping, tmp_path):
    options = ModelOptions("openai/m", base_url=dripping, api_key="none", timeout=1, prices=PriceOptions(1.0, 1.0))
    model = ChatModel(options, Ledger(tmp_path / "ledger.db"), Limits(LIMITS))
    request = ChatRequest(task="answer", messages=({"role": "user", "content": "Who?"},))

    async def read() -> list[str]:
        return [piece async for piece in model.stream(request)]

    began = time.monotonic()
    with pytest.raises(ModelError, match="interrupted"):
        asyncio.run(within_the_deadline(read()))
    assert time.monotonic() - began < 30


def test_no_message_of_a_server_controls_the_terminal(liar, tmp_path, caplog):
    said = "temperature \x1b]0;owned\x07 \x1b[2J is refused"
    tell(liar, {"error": {"message": said}}, 400)
    with pytest.raises(ModelError) as refused:
        asyncio.run(within_the_deadline(chat_model(liar, tmp_path).complete(REQUEST)))
    assert "owned" in caplog.text + str(refused.value)
    assert "\x1b" not in caplog.text + str(refused.value)


SECRET = "planted/provider=secret+0123"
ECHOES = {
    "the key is wrong": (401, {"error": {"message": f"Incorrect API key provided: {SECRET}"}}),
    "the request is rejected": (400, {"error": {"message": f"Bad header Authorization: Bearer {SECRET}"}}),
    "the server fails": (500, {"error": {"message": "x" * 490 + f" {SECRET}"}}),
    "a body that is no JSON": (503, f"<html>{SECRET}</html>"),
    "an answer that is no choice": (200, {"choices": SECRET}),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_of_the_providers_variable_that_is_echoed_is_not_shown(liar, tmp_path, monkeypatch, caplog, echo):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    status, body = ECHOES[echo]
    tell(liar, body, status)
    options = {"base_url": liar.url, "timeout": 5, "prices": PriceOptions(1.0, 1.0)}
    chat = ChatModel(ModelOptions("openai/m", **options), Ledger(tmp_path / "ledger.db"), Limits(LIMITS))
    embedder = EmbeddingModel(EmbeddingOptions("openai/m", **options), chat.ledger, Limits(LIMITS))
    for call in (chat.complete(REQUEST), embedder.embed(["a text"])):
        with pytest.raises(ModelError) as refused:
            asyncio.run(within_the_deadline(call))
        assert "planted" not in str(refused.value) + caplog.text
