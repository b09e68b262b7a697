"""`graphrag-assets serve` as a process: it starts, answers, refuses other addresses, and ends when it is told to."""

import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from tests.openai_server import running
from tests.server.conftest import QUESTION, completion, free_port


def started(index: object, port: int, **environment: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "graphrag_assets", "serve", "--port", str(port), "--index", str(index)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | environment
    )


@pytest.mark.extended
def test_serve_ends_on_sigterm_and_an_open_stream_says_why(sample_index):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with running(latency=60) as model:
        process = started(
            sample_index.root / "index",
            port,
            GRAPHRAG_CHAT_MODEL="openai/test-model",
            GRAPHRAG_CHAT_BASE_URL=model.url,
            OPENAI_API_KEY="none",
        )
        try:
            _wait(url)
            read: list[str] = []
            body = completion(QUESTION, stream=True)

            def ask() -> None:
                read.append(httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60).text)

            asking = threading.Thread(target=ask)
            asking.start()
            _until(lambda: model.chats)
            told = time.monotonic()
            process.send_signal(signal.SIGTERM)
            asking.join(30)
            assert time.monotonic() - told > 2.5
            assert "was closed before the answer was complete" in read[0]
            assert read[0].endswith("data: [DONE]\r\n\r\n")
            assert process.wait(60) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
            assert f"page: {url}/" in process.communicate()[0]
        finally:
            process.kill()


def _wait(url: str) -> None:
    def answers() -> bool:
        try:
            return httpx.get(f"{url}/healthz").text == "ok\n"
        except httpx.TransportError:
            return False

    _until(answers)


def _until(is_so) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)
