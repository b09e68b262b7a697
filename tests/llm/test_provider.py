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
from graphrag_assets.llm.model_options import ModelOptions
from graphrag_assets.llm.provider import Reply
from tests.llm.conftest import Lab, ask, run

MESSAGES = [{"role": "user", "content": "Who met Charles?"}]


async def sent(options: ModelOptions, **parameters: Any) -> Reply:
    """The reply to one request, made as `ChatModel` makes it."""
    response = await provider.litellm().acompletion(messages=MESSAGES, **provider.address(options), **parameters)
    return provider.read_reply(response)


def test_callbacks_set_in_litellm_hear_of_every_call(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    litellm, heard = provider.litellm(), []

    class Listener(litellm.integrations.custom_logger.CustomLogger):  # type: ignore[misc, name-defined]
        async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            heard.append(response_obj.choices[0].message.content)

    for callbacks in ("success_callback", "failure_callback", "_async_success_callback", "_async_failure_callback"):
        monkeypatch.setattr(litellm, callbacks, [])  # litellm adds the listener to these, for all later calls
    monkeypatch.setattr(litellm, "callbacks", [Listener()])

    async def ask() -> Reply:
        reply = await sent(ModelOptions("openai/test-model", lab.server.url))
        for _ in range(100):
            if heard:
                break
            await asyncio.sleep(0.05)
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
