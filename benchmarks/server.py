"""What `graphrag-assets serve` costs: start, memory, overhead over Python calls, answers a second, many questions.

    python -m benchmarks.server data/index --questions 2000

Everything is measured in one run on the same index: a server process, asked by OpenAI's protocol, and the same calls in
this process. Prints a table.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
from rich.console import Console
from rich.table import Table

from graphrag_assets.query import GraphRAG

PORT = 8399
QUESTIONS = (
    "Who commanded the Great Eastern in 1865?",
    "Why did the cable of 1858 fail?",
    "What did Cyrus Field do in New York?",
    "Which ships laid the cable?",
    "Who was the electrician of the company?",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--questions", type=int, default=400, help="of the run that watches memory")
    options = parser.parse_args()
    command = [sys.executable, "-m", "graphrag_assets", "serve", "--index", str(options.index), "--port", str(PORT)]
    begun, server = time.perf_counter(), subprocess.Popen(command, stdout=subprocess.DEVNULL)
    table = Table("measured", "value")
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{PORT}", timeout=120) as http, GraphRAG(options.index) as rag:
            _wait_for(http)
            table.add_row("start until /healthz answers", f"{time.perf_counter() - begun:.1f} s")
            table.add_row("memory of the idle server", f"{_megabytes(server):.0f} MB")
            served, called = _median(lambda question: _ask(http, question)), _median(rag.local)
            table.add_row("local answer over HTTP, p50", f"{served:.1f} ms")
            table.add_row("the same call in Python, p50", f"{called:.1f} ms")
            table.add_row(
                "first byte of a stream, p50", f"{_median(lambda question: _first_byte(http, question)):.1f} ms"
            )
            with ThreadPoolExecutor(16) as clients:
                memory = [_megabytes(server)]
                asked = [QUESTIONS[number % len(QUESTIONS)] for number in range(options.questions // 4)]
                begun = time.perf_counter()
                for _ in range(4):
                    list(clients.map(lambda question: _ask(http, question), asked))
                    memory.append(_megabytes(server))
            table.add_row(
                "local answers by 16 clients", f"{4 * len(asked) / (time.perf_counter() - begun):.0f} a second"
            )
            table.add_row(f"memory over {4 * len(asked)} answers", " → ".join(f"{one:.0f}" for one in memory) + " MB")
    finally:
        server.terminate()
        server.wait(30)
    Console(width=100).print(table)


def _wait_for(http: httpx.Client) -> None:
    for _ in range(600):
        try:
            http.get("/healthz")
            return
        except httpx.HTTPError:
            time.sleep(0.05)
    sys.exit("The server did not start within 30 seconds.")


def _completion(question: str, stream: bool) -> dict[str, Any]:
    return {"model": "graphrag-local", "messages": [{"role": "user", "content": question}], "stream": stream}


def _ask(http: httpx.Client, question: str) -> None:
    http.post("/v1/chat/completions", json=_completion(question, False)).raise_for_status()


def _first_byte(http: httpx.Client, question: str) -> None:
    with http.stream("POST", "/v1/chat/completions", json=_completion(question, True)) as response:
        next(response.iter_bytes())


def _median(call: Callable[[str], object]) -> float:
    """Median milliseconds of a call, after a first round that fills caches."""
    seconds = []
    for round_ in range(9):
        for question in QUESTIONS:
            begun = time.perf_counter()
            call(question)
            if round_:
                seconds.append(time.perf_counter() - begun)
    return 1000 * statistics.median(seconds)


def _megabytes(process: "subprocess.Popen[bytes]") -> float:
    return float(psutil.Process(process.pid).memory_info().rss / 1e6)


if __name__ == "__main__":
    main()
