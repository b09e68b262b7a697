"""Seconds from a question to its answer by the embedded default, per search method, on an index of any size.

    python -m benchmarks.cost_of_change --tokens 10000000 --folder /big/disk    # makes an index
    python -m benchmarks.answer_seconds /big/disk

The questions are about the sample text. Global search reads every report of a level: it is left out unless named by
`--method global`. `import litellm` at the same moment gives the speed of the machine.
"""

import argparse
import statistics
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.index_with_model import compile_package, import_of_litellm
from graphrag_assets.query import GraphRAG

QUESTIONS = (
    "Who commanded the Great Eastern in 1865?",
    "Why did the cable of 1858 fail?",
    "What did Cyrus Field do in London?",
    "Who made the cable for the Atlantic Telegraph Company?",
    "What happened at Valentia in July 1866?",
)
METHODS = ("basic", "local", "lazy", "drift")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the data folder of an index")
    parser.add_argument("--method", action="append", help="may be given several times; default: all but global")
    options = parser.parse_args()
    console = Console()
    compile_package()
    console.print(f"`import litellm`: {import_of_litellm().cpu_seconds:.1f} CPU s")
    table = Table("method", "median s", "longest s", "CPU s per question", title=f"{len(QUESTIONS)} questions")
    with GraphRAG(options.data) as rag:
        for method in options.method or METHODS:
            seconds, cpu_seconds = measure(rag, method)
            longest, median = max(seconds), statistics.median(seconds)
            table.add_row(method, f"{median:.2f}", f"{longest:.2f}", f"{cpu_seconds:.2f}")
    console.print(table)


def measure(rag: GraphRAG, method: str) -> tuple[list[float], float]:
    """Seconds of each question and mean CPU seconds, the better of two; one is asked before, to open the index."""
    rag.search(method, QUESTIONS[0])
    seconds, cpu_seconds = [], []
    for question in QUESTIONS:
        taken = [timed(rag, method, question) for _ in range(2)]
        seconds.append(min(wall for wall, _ in taken))
        cpu_seconds.append(min(cpu for _, cpu in taken))
    return seconds, statistics.mean(cpu_seconds)


def timed(rag: GraphRAG, method: str, question: str) -> tuple[float, float]:
    """Seconds and CPU seconds of an answer."""
    started, cpu_started = time.perf_counter(), time.process_time()
    rag.search(method, question)
    return time.perf_counter() - started, time.process_time() - cpu_started


if __name__ == "__main__":
    main()
