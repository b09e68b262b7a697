"""The example service under load, and what SIGTERM does to it: `python -m benchmarks.example_service`.

Indexes the sample corpus in a temporary folder and starts `examples/questions/service.py`. Users ask it questions one
after the other, each answer a stream, without a model; some leave in the middle. Then a model that needs a minute is
behind it, questions are in flight, and the service gets SIGTERM. Exits with status 1 if an answer fails, if memory
grows by more than a tenth after the first third, or if the service needs more than 10 seconds to end.
"""

import argparse
import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from tests.openai_server import running

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = (
    "Who commanded the Great Eastern in 1865?",
    "How are Cyrus Field and William Thomson connected?",
    "Why did the cable of 1858 fail?",
    "What are the main themes?",
    "What did Whitehouse do?",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--in-flight", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "data" / "input", Path(folder) / "input")
        environment = os.environ | {"GRAPHRAG_DATA": folder}
        index = [sys.executable, "-m", "graphrag_assets", "index"]
        subprocess.run(index, env=environment, check=True, stdout=subprocess.DEVNULL)
        with service(environment) as (program, url):
            answers, failed, memory = asyncio.run(under_load(url, program.pid, options.users, options.seconds))
        print(f"{options.users} users, {options.seconds:.0f} s: {answers} answers, {len(failed)} failed {failed[:3]}")
        print("MB:", " → ".join(f"{one:.0f}" for one in memory))
        with running(latency=60) as model:
            slow = {"GRAPHRAG_CHAT_MODEL": "openai/slow", "GRAPHRAG_CHAT_BASE_URL": model.url}
            with service(environment | slow | {"GRAPHRAG_CHAT_API_KEY": "none"}) as (program, url):
                seconds, ended = asyncio.run(terminated(program, url, options.in_flight))
        print(f"SIGTERM with {options.in_flight} in flight: status {program.returncode} after {seconds:.1f} s")
        print(f"last line of the {len(ended)} streams: {sorted(set(ended))}")
    if failed or memory[-1] > 1.1 * memory[len(memory) // 3] or seconds > 10:
        sys.exit(1)


@contextmanager
def service(environment: dict[str, str]) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """The service as its documentation starts it, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = "uvicorn --factory --app-dir examples/questions --log-level warning service:app"
    program = subprocess.Popen([sys.executable, "-m", *command.split(), "--port", str(port)], cwd=ROOT, env=environment)
    try:
        while program.poll() is None:
            try:
                httpx.get(f"http://127.0.0.1:{port}/passages?question=Who")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield program, f"http://127.0.0.1:{port}"
    finally:
        program.terminate()
        program.wait(60)


async def under_load(url: str, pid: int, users: int, seconds: float) -> tuple[int, list[str], list[float]]:
    """Complete answers, what failed, and the megabytes of the process ten times, the first after the first tenth."""
    answers, failed, memory, end = 0, list[str](), list[float](), time.monotonic() + seconds

    async def user(number: int, http: httpx.AsyncClient) -> None:
        nonlocal answers
        asked = number
        while time.monotonic() < end:
            asked += 1
            question, leaves = QUESTIONS[asked % len(QUESTIONS)], asked % 10 == 0
            try:
                last = await stream(http, url, question, leaves)
                answers += not leaves
                if '"error"' in last or (not leaves and '"citations"' not in last):
                    failed.append(last or "nothing")
            except httpx.HTTPError as error:
                failed.append(repr(error))

    async def watch() -> None:
        for _ in range(10):
            await asyncio.sleep(seconds / 10)
            memory.append(psutil.Process(pid).memory_info().rss / 1e6)

    async with httpx.AsyncClient(timeout=60, headers={"X-User": "ann"}) as http:
        await asyncio.gather(watch(), *(user(number, http) for number in range(users)))
    return answers, failed, memory


async def stream(http: httpx.AsyncClient, url: str, question: str, leaves: bool = False) -> str:
    """The last line of an answer; who leaves reads the first one only."""
    last = ""
    async with http.stream("GET", f"{url}/ask", params={"question": question}) as response:
        async for line in response.aiter_lines():
            last = line
            if leaves:
                break
    return last


async def terminated(program: "subprocess.Popen[bytes]", url: str, count: int) -> tuple[float, list[str]]:
    """Seconds from SIGTERM to the end, and the last line, or the error, of each question in flight."""

    async def ask(http: httpx.AsyncClient, number: int) -> str:
        try:
            return await stream(http, url, f"What did Cyrus Field do in {1850 + number}?")
        except httpx.HTTPError as error:
            return type(error).__name__

    async with httpx.AsyncClient(timeout=60, headers={"X-User": "ann"}) as http:
        asking = [asyncio.create_task(ask(http, number)) for number in range(count)]
        await asyncio.sleep(3)
        begun = time.monotonic()
        program.terminate()
        await asyncio.to_thread(program.wait, 60)
        return time.monotonic() - begun, await asyncio.gather(*asking)


if __name__ == "__main__":
    main()
