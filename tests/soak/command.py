"""Runs an operation as the command line does, and kills it with SIGKILL at a moment.

python -m tests.soak.command never index
python -m tests.soak.command change 12 purge      # at the change of files number 12, see tests/hostile/killing.py
python -m tests.soak.command publication 3 index  # at the change number 3 of those made by the publication
python -m tests.soak.command second 1.5 index
"""

import math
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import graphrag_assets.cli.index_runs  # noqa: F401 - seconds of imports, before the time of a kill is counted
from graphrag_assets.cli.main import main
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.publish import update_publication
from graphrag_assets.store.compaction import compact
from tests.hostile.killing import killed_at

# What a process was about, by the innermost of these modules that was running.
PHASES = {
    "compaction": "compaction",
    "publication_writer": "publication",
    "publish": "publication",
    "purge": "purge",
    "publications": "rollback",
    "importer": "import",
    "imports": "import",
    "imported_batches": "import",
}
WITHOUT_COMMAND = {
    "publish": lambda: update_publication(Index.from_environment(), "soak"),
    "compact": lambda: compact(Index.from_environment().working, always=True),
}
KILLED = "Killed in: "
ENDED = "Changes and seconds: "


def die() -> None:
    """kill -9 this process, after a line that says what its main thread was about."""
    os.write(1, f"\n{KILLED}{phase()}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


def phase() -> str:
    """What the main thread is about."""
    stack = traceback.extract_stack(sys._current_frames()[threading.main_thread().ident])  # type: ignore[index]
    modules = (Path(frame.filename).stem for frame in reversed(stack))
    return next((PHASES[module] for module in modules if module in PHASES), "batches and graph")


@dataclass
class Changes:
    """Counts changes of files, and dies at the change number `fatal` of those in a phase (None: in any)."""

    fatal: float = math.inf
    only: str | None = None
    passed: int = 0

    def __call__(self) -> None:
        if self.only in (None, phase()):
            self.passed += 1
        if self.passed > self.fatal:
            die()


def run(changes: Changes, operation: str, *arguments: str) -> None:
    began = time.monotonic()
    try:
        with killed_at(-1, changes):
            if operation in WITHOUT_COMMAND:
                WITHOUT_COMMAND[operation]()
            else:
                main([operation, *arguments])
    except GraphRAGError as error:
        sys.exit(f"Error: {error}")
    finally:
        os.write(1, f"\n{ENDED}{changes.passed} {time.monotonic() - began:.2f}\n".encode())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["never", *command]:
            run(Changes(), *command)
        case ["change", number, *command]:
            run(Changes(int(number)), *command)
        case ["publication", number, *command]:
            run(Changes(int(number), "publication"), *command)
        case ["second", seconds, *command]:
            timer = threading.Timer(float(seconds), die)
            timer.daemon = True
            timer.start()
            run(Changes(), *command)
