"""Questions from many threads at once, and from forked processes. Each test is a process of its own, with a deadline."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.model_index import PROJECT
from tests.openai_content import CORRECTION
from tests.openai_server import running

SECONDS = 120
METHODS = ("local", "global_", "drift", "basic", "lazy", "planned", "ask", "retrieve", "plan")


def run(*arguments: str, **settings: str) -> str:
    """What a Python process without other settings prints; `TimeoutExpired` if it hangs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHRAG_")}
    found = subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=kept | settings,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.extended
def test_first_questions_of_many_threads_are_answered(index_file: Path, tmp_path: Path) -> None:
    printed = run("-m", "tests.query.first_questions", str(index_file), *METHODS, GRAPHRAG_DATA=str(tmp_path))
    assert json.loads(printed) == []


@pytest.mark.extended
def test_first_questions_of_many_threads_are_answered_by_a_chat_model(index_file: Path, tmp_path: Path) -> None:
    with running() as server:
        printed = run(
            *("-m", "tests.query.first_questions", str(index_file), *METHODS),
            GRAPHRAG_DATA=str(tmp_path),
            GRAPHRAG_CHAT_MODEL="openai/test-model",
            GRAPHRAG_CHAT_BASE_URL=server.url,
            GRAPHRAG_CHAT_API_KEY="none",
        )
        asked = [request.body["messages"] for request in server.chats]
    # The server's plans have random variables, which are refused.
    assert [error for error in json.loads(printed) if "plan_question" not in error] == []
    # What got an answer that was not valid is not in the ledger: who asks it later, asks it again.
    again = [messages for messages in asked if str(messages[-1]["content"]).startswith(CORRECTION)]
    refused = {str(messages[:-2]) for messages in again}
    sent = [str(messages) for messages in asked if messages not in again and str(messages) not in refused]
    assert len(sent) == len(set(sent))
