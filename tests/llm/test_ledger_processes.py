"""Concurrent and killed processes: only in-flight requests are paid twice."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.openai_server import OpenAIServer

PROJECT = Path(__file__).parents[3]


def start(server: OpenAIServer, ledger: Path, first: int, last: int, concurrency: int = 4) -> subprocess.Popen:
    arguments = [server.url, str(ledger), str(first), str(last), str(concurrency)]
    command = [sys.executable, "-m", "tests.llm.ledger_process", *arguments]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> dict:
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


@pytest.mark.long
def test_killed_process_repeats_only_in_flight_calls(openai_server: OpenAIServer, tmp_path: Path) -> None:
    ledger, chance, lost = tmp_path / "ledger.db", random.Random(5), 0
    openai_server.latency = 0.02
    for _ in range(2):
        seen = len(openai_server.chats)
        process = start(openai_server, ledger, 0, 120)
        target = seen + chance.randint(10, 50)
        while len(openai_server.chats) < target:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.communicate()
        lost += 4  # its concurrency: at most so many were in flight
    usage = finish(start(openai_server, ledger, 0, 120))

    assert len(openai_server.chats) <= 120 + lost
    assert len({request.body["messages"][0]["content"] for request in openai_server.chats}) == 120
    assert usage["ledger_hits"] + usage["calls"] == 120
    assert len(usage["answers"]) == 120

    undisturbed = finish(start(openai_server, tmp_path / "other.db", 0, 120))
    assert undisturbed["answers"] == usage["answers"]
