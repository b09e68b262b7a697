"""`graphrag-assets serve` as a process: it starts, answers, refuses other addresses, and ends when it is told to."""

import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from tests.cli import run_command


def test_serve_answers_and_ends_on_sigterm_with_a_stream_open(sample_index):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "graphrag_assets", "serve", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--index", str(sample_index.root / "index")], stdout=subprocess.PIPE, text=True
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url)
        assert httpx.post(f"{url}/api/retrieve", json={"question": "Niagara"}, timeout=60).json()["passages"]
        body = {"question": "What are the themes?", "method": "global"}
        with httpx.stream("POST", f"{url}/api/query/stream", json=body, timeout=60) as response:
            next(response.iter_lines())
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
        assert f"page: {url}/" in process.communicate()[0]
    finally:
        process.kill()


def _wait(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            assert httpx.get(f"{url}/healthz").text == "ok\n"
            return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail("the server did not start")


def test_another_address_without_a_token_is_refused(sample_index, monkeypatch):
    monkeypatch.delenv("GRAPHRAG_SERVER_TOKENS", raising=False)
    said = run_command("serve", "--host", "0.0.0.0", "--index", str(sample_index.root / "index"), status=1)
    assert "Set GRAPHRAG_SERVER_TOKENS" in said


def test_a_port_in_use_is_said(sample_index):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "graphrag_assets",
                "serve",
                "--port",
                str(port),
                "--index",
                str(sample_index.root / "index"),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode != 0
    assert "address already in use" in done.stdout + done.stderr
