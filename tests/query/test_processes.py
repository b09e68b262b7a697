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


_FORKED = """
import multiprocessing, sys
from graphrag_assets.query import GraphRAG

path, kind, first = sys.argv[1:]

def ask(path):
    try:
        return str(GraphRAG(path).local("Who was the captain?").citations is not None)
    except Exception as error:
        return str(error)

if __name__ == "__main__":
    if first == "asked":
        ask(path)
    with multiprocessing.get_context(kind).Pool(1) as pool:
        print(pool.apply_async(ask, (path,)).get(timeout=60))
    print(ask(path))
"""


@pytest.mark.extended
def test_a_fork_of_a_process_that_has_asked_raises_an_error_that_names_spawn(index_file: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_FORKED)

    def printed(*how: str) -> list[str]:
        return run(
            str(script), str(index_file), *how, GRAPHRAG_DATA=str(tmp_path), PYTHONPATH=str(PROJECT)
        ).splitlines()

    in_child, in_parent = printed("fork", "asked")
    assert "spawn" in in_child
    assert in_parent == "True"
    assert printed("spawn", "asked") == ["True", "True"]
    assert printed("fork", "not asked") == ["True", "True"]
