"""Counts what one question runs of the package: functions, files, SQL statements and hand-overs to threads.

    python -m benchmarks.walk local
    python -m benchmarks.walk local global basic --list

Indexes the sample corpus with the embedded default, asks once to warm up, and counts the second question of each
method. Functions are those defined in the package, without lambdas and comprehensions; `--list` prints them by file.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).resolve().parents[1]
PACKAGE = str(PROJECT / "graphrag_assets")
WARM_UP, QUESTION = "Who was Cyrus Field?", "Who commanded the Great Eastern when the cable of 1865 was lost?"


class Walk:
    """Counts calls while `counting`; threads that start after `watch` are counted, too."""

    def __init__(self) -> None:
        self.active = False
        self.functions: set[CodeType] = set()
        self.calls: Counter[str] = Counter()

    def watch(self) -> None:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.functions, self.calls, self.active = set(), Counter(), True
        try:
            yield
        finally:
            self.active = False

    @property
    def files(self) -> dict[str, list[str]]:
        """The functions by file."""
        found: dict[str, list[str]] = {}
        for code in self.functions:
            found.setdefault(code.co_filename.removeprefix(f"{PACKAGE}/"), []).append(code.co_qualname)
        return {file: sorted(found[file]) for file in sorted(found)}

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.active:
            return
        code = frame.f_code
        if event == "call":
            if code.co_filename.startswith(PACKAGE) and "<" not in code.co_name:
                self.functions.add(code)
                self.calls["sql"] += code.co_qualname == "Reader._fetch"
            elif code.co_qualname == "ThreadPoolExecutor.submit":
                self.calls["threads"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="+")
    parser.add_argument("--folder", type=Path, help="where the index is kept; default: made for this run only")
    parser.add_argument("--list", action="store_true", help="print the functions by file")
    options = parser.parse_args()
    walk, console = Walk(), Console()
    walk.watch()
    from graphrag_assets.query import GraphRAG

    table = Table("method", "functions", "files", "SQL statements", "hand-overs to threads")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        environment = {**os.environ, "GRAPHRAG_DATA": str(folder), "GRAPHRAG_INPUT": str(PROJECT / "data/input")}
        command = [sys.executable, "-m", "graphrag_assets", "index"]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        with GraphRAG(folder / "index") as rag:
            for method in options.methods:
                rag.search(method, WARM_UP)
                with walk.counting():
                    rag.search(method, QUESTION)
                files = walk.files
                table.add_row(
                    method, *map(str, (len(walk.functions), len(files), walk.calls["sql"], walk.calls["threads"]))
                )
                for file, functions in files.items() if options.list else ():
                    console.print(f"[bold]{method} {file}[/]: {', '.join(functions)}", highlight=False, soft_wrap=True)
    console.print(table)


if __name__ == "__main__":
    main()
