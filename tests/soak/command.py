"""Runs an operation as the command line does, killed with SIGKILL at one of its changes of files.

python -m tests.soak.command never index
python -m tests.soak.command 12 purge     # killed at the change number 12, see tests/hostile/killing.py
"""

import os
import signal
import sys
import threading
import traceback
from pathlib import Path

import graphrag_assets.cli.index  # noqa: F401 - seconds of imports, before the time of a kill is counted
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


def die() -> None:
    """kill -9 this process, after a line that says what its main thread was about."""
    stack = traceback.extract_stack(sys._current_frames()[threading.main_thread().ident])  # type: ignore[index]
    modules = (Path(frame.filename).stem for frame in reversed(stack))
    phase = next((PHASES[module] for module in modules if module in PHASES), "batches and graph")
    os.write(1, f"\n{KILLED}{phase}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


def run(operation: str, *arguments: str) -> None:
    if operation not in WITHOUT_COMMAND:
        main([operation, *arguments])
        return
    try:
        WITHOUT_COMMAND[operation]()
    except GraphRAGError as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["never", *command]:
            run(*command)
        case ["change", number, *command]:
            with killed_at(int(number), die):
                run(*command)
        case ["second", seconds, *command]:
            timer = threading.Timer(float(seconds), die)
            timer.daemon = True
            timer.start()
            run(*command)
