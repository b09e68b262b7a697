"""Kills an indexing process at chosen moments, indexes again to the end, and counts repeated requests."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from graphrag_assets.llm.ledger import key_of
from tests.model_index import ModelIndex, Tables, finish, kill
from tests.openai_server import OpenAIServer, Request

Due = Callable[[float, int], bool]
"""Whether to kill, from the seconds since the start of the process and the requests it has sent."""


@dataclass
class Killed:
    """The result of kills and the run after them.

    Attributes:
        killed: how many processes were killed; the others had ended by then.
        before, after: requests of the killed runs and of the run after them.
        in_flight: requests of the killed runs whose answers had not reached the ledger.
        tables: those of the last run.
    """

    killed: int = 0
    before: int = 0
    in_flight: int = 0
    after: int = 0
    tables: Tables | None = None

    def extra(self, undisturbed: int) -> int:
        """Requests beyond those of an undisturbed run."""
        return self.before + self.after - undisturbed


def index_once(server: OpenAIServer, folder: Path, documents: Path) -> tuple[Tables, int, float]:
    """Tables, requests and seconds of an undisturbed run."""
    before, began, made = len(server.requests), time.monotonic(), ModelIndex(folder, server.url, documents)
    made.run()
    return made.tables(), len(server.requests) - before, time.monotonic() - began


def kill_and_rerun(server: OpenAIServer, folder: Path, documents: Path, *dues: Due) -> Killed:
    """Index into an empty folder, kill -9 when due and restart, for each of `dues`; at last index to the end."""
    made, found = ModelIndex(folder, server.url, documents), Killed()
    for due in dues:
        stored = stored_answers(made.folder / "index")
        first, process, began = len(server.requests), made.start(), time.monotonic()
        while process.poll() is None and not due(time.monotonic() - began, len(server.requests) - first):
            time.sleep(0.002)
        if process.poll() is not None:
            finish(process)
        else:
            kill(process)
            while server.in_flight:  # nobody receives these answers
                time.sleep(0.01)
            found.killed += 1
            found.in_flight += unstored(server.requests[first:], stored, stored_answers(made.folder / "index"))
        found.before += len(server.requests) - first
    first = len(server.requests)
    made.run()
    found.after, found.tables = len(server.requests) - first, made.tables()
    return found


def stored_answers(index_folder: Path) -> set[tuple[str, str]]:
    """Kind and key of all entries of the ledger."""
    ledger = index_folder / "ledger.sqlite"
    if not ledger.exists():
        return set()
    with closing(sqlite3.connect(ledger)) as connection:
        if not connection.execute("SELECT name FROM sqlite_master").fetchall():  # killed before the table was made
            return set()
        return set(connection.execute("SELECT kind, key FROM llm_calls"))


def unstored(requests: list[Request], before: set[tuple[str, str]], after: set[tuple[str, str]]) -> int:
    """How many of a run's requests left no answer in the ledger."""
    embeddings = [request.body["input"] for request in requests if "input" in request.body]
    stored = {key for kind, key in after if kind == "embedding"}
    answered = sum(kind in ("chat", "invalid") for kind, _ in after - before)
    lost = sum(any(embedding_key(text) not in stored for text in texts) for texts in embeddings)
    return len(requests) - len(embeddings) - answered + lost


def embedding_key(text: str) -> str:
    return key_of("embedding", "openai", "test-embedding", {}, text)
