"""litellm's public functions as this package calls them."""

import asyncio
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.llm import provider
from graphrag_assets.llm.model_errors import CircuitOpen
from graphrag_assets.llm.model_options import ChatOptions
from graphrag_assets.llm.provider import Failure, Reply
from tests.llm.conftest import Lab, ask, run

MESSAGES = [{"role": "user", "content": "Who met Charles?"}]


async def sent(options: ChatOptions, **parameters: Any) -> Reply:
    """The reply to one request, made as `ChatModel` makes it."""
    response = await provider.litellm().acompletion(messages=MESSAGES, **provider.address(options), **parameters)
    return provider.read_reply(response, options.model)


def outcome(lab: Lab, fault: str | None, model: str = "openai/test-model") -> Reply | Failure:
    """The result of a request that meets this fault."""
    lab.server.fail_next(fault)
    options = ChatOptions(model, lab.server.url, timeout=5)

    async def send() -> Reply | Failure:
        try:
            return await sent(options, temperature=0)
        except Exception as error:
            return provider.failure(error)
        finally:
            await provider.close_clients()

    return run(send())


@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        ("400", "rejected", 400),
        ("401", "fatal", 401),
        ("403", "fatal", 403),
        ("404", "fatal", 404),
        ("408", "transient", 408),
        ("429", "rate_limited", 429),
        ("500", "transient", 500),
        ("503", "transient", 503),
    ],
)
def test_failures_are_classified_and_keep_the_provider_s_words(lab: Lab, fault: str, kind: str, status: int) -> None:
    failure = outcome(lab, fault)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.status, failure.message) == (kind, status, f"Scripted answer {fault}.")
    assert len(lab.server.chats) == 1  # no retries but ours


@pytest.mark.parametrize("fault", ["closed", "cut", "malformed-body"])
def test_broken_replies_are_transient(lab: Lab, fault: str) -> None:
    failure = outcome(lab, fault)
    assert isinstance(failure, Failure)
    assert failure.kind == "transient"


def test_known_model_has_the_price_of_litellm(lab: Lab) -> None:
    reply = outcome(lab, None, "openai/gpt-4o-mini")
    assert isinstance(reply, Reply)
    prices = provider.known("openai/gpt-4o-mini")
    assert prices is not None
    assert reply.cost_usd == pytest.approx(
        reply.prompt_tokens * prices["input_cost_per_token"] + reply.completion_tokens * prices["output_cost_per_token"]
    )


def test_other_providers_with_openai_s_protocol_get_the_same_request(lab: Lab) -> None:
    assert outcome(lab, None, "hosted_vllm/test-model") == outcome(lab, None)
    first, second = lab.server.chats
    assert first.body == second.body


def test_callbacks_set_in_litellm_hear_of_every_call(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    litellm, heard = provider.litellm(), []

    class Listener(litellm.integrations.custom_logger.CustomLogger):  # type: ignore[misc, name-defined]
        async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            heard.append(response_obj.choices[0].message.content)

    for callbacks in ("success_callback", "failure_callback", "_async_success_callback", "_async_failure_callback"):
        monkeypatch.setattr(litellm, callbacks, [])  # litellm adds the listener to these, for all later calls
    monkeypatch.setattr(litellm, "callbacks", [Listener()])

    async def ask() -> Reply:
        reply = await sent(ChatOptions("openai/test-model", lab.server.url))
        for _ in range(100):
            if heard:
                break
            await asyncio.sleep(0.05)
        await provider.close_clients()
        return reply

    assert [run(ask()).text] == heard


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
def test_a_certificate_that_is_not_trusted_is_named_with_the_remedy(lab: Lab, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -days 1 -subj /CN=localhost"
    subprocess.run(made.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("localhost", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(CircuitOpen, match=r"certificate.*Set SSL_CERT_FILE"):
            run(lab.chat(base_url=f"https://localhost:{server.server_port}/v1").complete(ask()))
        server.shutdown()
