"""What `graphrag-assets serve` costs: start, memory, overhead over Python calls, requests a second, many questions.

    python -m benchmarks.server data/index
    python -m benchmarks.server data/index --questions 2000

Everything is measured in one run on the same index: a server process of its own, and the same questions asked in this
process. Prints a table.
"""

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

from graphrag_assets.query import GraphRAG

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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, begun = f"http://127.0.0.1:{port}", time.perf_counter()
    command = [sys.executable, "-m", "graphrag_assets", "serve", "--index", str(options.index), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(url)
        table = Table("measured", "value")
        table.add_row("start until /healthz answers", f"{time.perf_counter() - begun:.1f} s")
        table.add_row("memory of the idle server", f"{_memory(server.pid):.0f} MB")
        with httpx.Client(base_url=url, timeout=60) as http, GraphRAG(options.index) as rag:
            over_http = _median(lambda question: http.post("/api/retrieve", json={"question": question}))
            in_python = _median(lambda question: rag.retrieve(question))
            table.add_row("retrieve over HTTP, p50", f"{over_http:.1f} ms")
            table.add_row("retrieve in Python, p50", f"{in_python:.1f} ms")
            table.add_row("overhead", f"{over_http - in_python:.1f} ms")
            table.add_row("first byte of a stream, p50", f"{_first_byte(http):.0f} ms")
        for name, path in (("retrieve", "/api/retrieve"), ("local answers", "/api/query")):
            _, seconds = asyncio.run(_ask(url, path, 200))
            table.add_row(f"{name}, 16 clients", f"{200 / seconds:.0f} a second")
        memory = [_memory(server.pid)]
        for _ in range(4):
            failed, _ = asyncio.run(_ask(url, "/api/query", options.questions // 4))
            memory.append(_memory(server.pid))
        table.add_row(f"memory over {options.questions} answers", " → ".join(f"{one:.0f}" for one in memory) + " MB")
        table.add_row("failed", str(failed))
        Console(width=100).print(table)
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(url: str) -> None:
    for _ in range(600):
        try:
            httpx.get(f"{url}/healthz")
            return
        except httpx.HTTPError:
            time.sleep(0.05)
    sys.exit("The server did not start within 30 seconds.")


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


def _first_byte(http: httpx.Client) -> float:
    seconds = []
    for question in QUESTIONS:
        begun = time.perf_counter()
        with http.stream("POST", "/api/query/stream", json={"question": question}) as response:
            next(response.iter_bytes())
            seconds.append(time.perf_counter() - begun)
    return 1000 * statistics.median(seconds)


async def _ask(url: str, path: str, count: int, clients: int = 16) -> tuple[int, float]:
    """Failed requests, and the seconds of all."""
    failed, left, begun = 0, iter(range(count)), time.perf_counter()

    async def ask(http: httpx.AsyncClient) -> None:
        nonlocal failed
        for number in left:
            body = {"question": QUESTIONS[number % len(QUESTIONS)]}
            response = await http.post(path, json=body | ({"method": "local"} if path == "/api/query" else {}))
            failed += response.status_code != 200

    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        await asyncio.gather(*(ask(http) for _ in range(clients)))
    return failed, time.perf_counter() - begun


def _memory(pid: int) -> float:
    """Resident megabytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
