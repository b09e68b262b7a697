"""Memory of a process that asks questions without a model: `python -m benchmarks.question_memory`.

Indexes the sample corpus in a temporary folder. Each search method answers in a process of its own, which prints its
resident megabytes after the imports, with the index open, after a question, two seconds later (DuckDB has returned what
it does not need), and after thirty more questions.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

INPUT = Path(__file__).resolve().parents[1] / "data" / "input"
METHODS = ("ask", "local", "global", "basic", "drift", "lazy", "planned")
QUESTIONS = ("Who commanded the Great Eastern in 1865?", "Why did the cable of 1858 fail?", "Who was Cyrus Field?")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(INPUT, Path(folder) / "input")
        environment = os.environ | {"GRAPHRAG_DATA": folder}
        index = [sys.executable, "-m", "graphrag_assets", "index"]
        subprocess.run(index, env=environment, check=True, stdout=subprocess.DEVNULL)
        for method in METHODS:
            subprocess.run([sys.executable, "-m", "benchmarks.question_memory", method], env=environment, check=True)


def answer(method: str) -> None:
    from graphrag_assets import GraphRAG

    memory = [_megabytes()]
    with GraphRAG() as rag:
        memory.append(_megabytes())
        for questions in (QUESTIONS[:1], QUESTIONS * 10):
            for question in questions:
                rag.search(method, question)  # type: ignore[arg-type]
            memory.append(_megabytes())
            time.sleep(2)
            memory.append(_megabytes())
    imported, opened, asked, later, _, many = memory
    print(
        f"{method}: imports {imported:.0f}, open {opened:.0f}, a question {asked:.0f}, two seconds later {later:.0f}, "
        f"thirty questions {many:.0f} MB"
    )


def _megabytes() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


if __name__ == "__main__":
    answer(sys.argv[1]) if len(sys.argv) > 1 else main()
