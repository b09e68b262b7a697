"""Signals at awkward moments: the command ends with the signal's status, and says what is done."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphrag_assets.runtime.interruption import first_signal, raise_if_interrupted, signals_noted
from graphrag_assets.store.index_files import current_number
from tests.openai_server import running, task_of


class SlowTask:
    """Lets the server wait with its answers to one task."""

    def __init__(self, task: str):
        self.task = task

    def draw(self, raw: bytes, attempt: int) -> str | None:
        body = json.loads(raw)
        return "slow" if "messages" in body and task_of(body) == self.task else None


@pytest.mark.extended
def test_a_signal_ends_the_command_with_its_status(tmp_path: Path) -> None:
    task = "CommunityReport"
    for name in ("one", "two"):
        (tmp_path / "input" / name).mkdir(parents=True)
        (tmp_path / "input" / name / "a.md").write_text(
            f"Captain James {name.title()} commanded the Great Eastern. Cyrus Field met {name.title()} Thomson in "
            "Valentia. Samuel Canning sailed with Cyrus Field to Newfoundland."
        )
    with running(slow_seconds=60.0, faults=SlowTask(task)) as server:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHRAG_")}
        environment |= {
            "GRAPHRAG_DATA": str(tmp_path),
            "GRAPHRAG_CHAT_MODEL": "openai/test-chat",
            "GRAPHRAG_CHAT_BASE_URL": server.url,
            "DAGSTER_HOME": "",
            "COLUMNS": "200",
        }
        command = [sys.executable, "-m", "graphrag_assets", "index"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes) as process:
            while task not in {chat.task for chat in server.chats} and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGINT, output
    assert "2 of 2 batches are indexed, nothing new is published." in output
    assert "Interrupted. What was committed stays" in output
    assert current_number(tmp_path / "index") is None


def test_a_signal_that_a_library_drops_still_interrupts() -> None:
    with signals_noted():
        before = signal.signal(signal.SIGTERM, lambda *_: None)  # as Dagster between two steps
        os.kill(os.getpid(), signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)
        assert first_signal() == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            raise_if_interrupted()
    raise_if_interrupted()  # noted no more
