"""Indexing by the command in a separate process with the models of a test server, and the resulting tables.

For tests and benchmarks that fault, kill or measure whole runs.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from graphrag_assets.store import schema

PROJECT = Path(__file__).resolve().parents[1]
SAMPLE_INPUT = PROJECT / "data" / "input"

# Tables and columns about runs, times and addresses rather than the index.
_BOOKKEEPING = {
    schema.INDEX_RUNS.name,
    schema.PUBLICATION.name,
}
_OF_THE_RUN = {"run_id", "committed_at", "first_seen"}
_OF_THE_SERVER = ("chat_base_url", "embedding_base_url")

Tables = dict[str, list[tuple[Any, ...]]]


@dataclass
class ModelIndex:
    """An index at `folder`, made of `input` by the models of the server at `url`; `more` are further settings."""

    folder: Path
    url: str
    input: Path = SAMPLE_INPUT
    more: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The caller's, without its settings, and with those of this index."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_", "DAGSTER_"))}
        settings = {
            "DATA": str(self.folder),
            "INPUT": str(self.input),
            "CHAT_MODEL": "openai/test-model",
            "CHAT_BASE_URL": self.url,
            "EMBEDDING_MODEL": "openai/test-embedding",
            "EMBEDDING_BASE_URL": self.url,
        }
        return kept | {f"GRAPHRAG_{name}": value for name, value in (settings | self.more).items()}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `graphrag-assets index` in a new process group."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [sys.executable, "-m", "graphrag_assets", "index", *arguments],
            cwd=PROJECT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> str:
        """The output of `index`; `AssertionError` if it fails."""
        return finish(self.start(*arguments))

    def tables(self) -> Tables:
        """The rows of every table of the working database, without what differs between runs."""
        path = str(self.folder / "index" / "working.duckdb")
        found: Tables = {}
        with duckdb.connect(path, read_only=True) as connection:
            for table in schema.WORKING:
                if table.name not in _BOOKKEEPING:
                    columns = ", ".join(f'"{name}"' for name in table.column_names if name not in _OF_THE_RUN)
                    found[table.name] = connection.execute(
                        f'SELECT {columns} FROM "{table.name}" ORDER BY ALL'
                    ).fetchall()
        settings = schema.INDEX_SETTINGS.name
        found[settings] = [row for row in found[settings] if row[0] not in _OF_THE_SERVER]
        return found


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the process and return its output; `AssertionError` if it fails."""
    out, _ = process.communicate()
    assert process.returncode == 0, out
    return out


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 the process and its children."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def differences(first: Tables, second: Tables) -> list[str]:
    """The tables that differ, by how many rows, with one example of each side."""

    def told() -> Iterator[str]:
        for name in first.keys() | second.keys():
            ours, theirs = first.get(name, []), second.get(name, [])
            if ours != theirs:
                known, other = {repr(row) for row in ours}, {repr(row) for row in theirs}
                samples = [next(iter(sorted(one - two)), "")[:300] for one, two in ((known, other), (other, known))]
                yield f"{name}: {len(known - other)} rows here, {len(other - known)} there, such as {samples}"

    return sorted(told())


@contextmanager
def server_process(*options: str) -> Iterator[str]:
    """Base URL of a test server in a separate process."""
    command = [sys.executable, "-m", "tests.openai_server", *options]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
