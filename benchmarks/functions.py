"""How many functions and files of the package an operation passes, in all its threads: python -m benchmarks.functions.

Each operation runs in a process of its own, on the sample corpus in a temporary folder: the first index, a local and a
global question with the embedded default, and one call of a chat model, which is the test server.
"""

import contextlib
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from tests.model_index import PROJECT, server_process

PACKAGE = str(PROJECT / "graphrag_assets") + os.sep
QUESTION = "Who commanded the Great Eastern in 1865?"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, server_process() as url:
        shutil.copytree(PROJECT / "data" / "input", Path(folder) / "input")
        environment = os.environ | {"GRAPHRAG_DATA": folder, "OPENAI_API_KEY": "none", "SERVER": url}
        for name in OPERATIONS:
            subprocess.run([sys.executable, "-m", "benchmarks.functions", name], env=environment, check=True)


def index() -> None:
    from graphrag_assets.cli.main import main as command

    command(["index"], standalone_mode=False)


def question(method: str) -> None:
    from graphrag_assets import GraphRAG

    with GraphRAG() as rag:
        rag.search(method, QUESTION)  # type: ignore[arg-type]


def model_call() -> None:
    from graphrag_assets.llm.backend import chat_model
    from graphrag_assets.llm.event_loop import wait_for
    from graphrag_assets.llm.model_options import ChatRequest
    from graphrag_assets.settings import Settings

    values = {"data": os.environ["GRAPHRAG_DATA"], "chat_model": "openai/test-model"}
    model = chat_model(Settings(**values, chat_base_url=os.environ["SERVER"]))
    wait_for(model.complete(ChatRequest("respond", [{"role": "user", "content": QUESTION}])))


OPERATIONS: dict[str, Callable[[], None]] = {
    "first index": index,
    "local question": lambda: question("local"),
    "global question": lambda: question("global"),
    "model call": model_call,
}


def count(name: str) -> None:
    """Run an operation, and print what it passes; what imports run does not count."""
    passed: set[tuple[str, str]] = set()

    def record(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            passed.add((code.co_filename, code.co_qualname))

    for module in pkgutil.walk_packages([PACKAGE], "graphrag_assets."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of a library that is not installed
                importlib.import_module(module.name)
    threading.setprofile(record)
    sys.setprofile(record)
    try:
        OPERATIONS[name]()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    print(f"{name}: {len(passed)} functions in {len({file for file, _ in passed})} files")


if __name__ == "__main__":
    count(sys.argv[1]) if len(sys.argv) > 1 else main()
