"""CPU of our own code per model call on top of litellm, and throughput at concurrency 25.

    python -m benchmarks.model_calls
    python -m benchmarks.model_calls --calls 500 --rounds 5

The test server runs in a process of its own and answers repeated requests from memory. CPU is that of this process at
no latency, the least of the rounds, each of which has all ways in turn: other work on the machine only adds to it.
Throughput is against a server that answers after 200 ms, the best of the rounds, as a share of concurrency / latency.
What is required of ours is relative to litellm's alone, which a busy machine slows down as much.

    litellm as it comes   acompletion, concurrency held by a semaphore
    litellm as we call it the same with our settings of litellm
    ChatModel             key, ledger, limits, budget, validation, accounting, as the index calls it
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from graphrag_assets.llm import provider
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.event_loop import run_concurrently, wait_for
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.limits import Limits
from graphrag_assets.llm.model_options import ChatRequest, LimitOptions, ModelOptions
from tests.model_index import server_process

TEXT = "Ada Lovelace met Charles Babbage in London and wrote to him. " * 90  # about 1,200 tokens
CONCURRENCY, LATENCY = 25, 0.2
OWN_MILLISECONDS, SHARE = 2.0, 0.9

Way = Callable[[str, int], tuple[float, float]]
"""CPU milliseconds per call and calls per second of so many calls to the server at a URL."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ways: dict[str, Way] = {"litellm as it comes": plain, "litellm as we call it": bare, "ChatModel": ours}
    rounds = range(options.rounds + 1)  # the first fills the server's memory
    with server_process("--remember") as url:
        costs = [{name: way(url, options.calls)[0] for name, way in ways.items()} for _ in rounds]
    cpu = {name: min(cost[name] for cost in costs) for name in ways}
    with server_process("--remember", "--latency", str(LATENCY)) as url:
        ideal = CONCURRENCY / LATENCY
        speeds = [{name: way(url, options.calls)[1] for name, way in ways.items()} for _ in rounds]
    shares = {name: max(speed[name] for speed in speeds) / ideal for name in ways}
    table = Table("", "CPU ms per call", f"throughput at {CONCURRENCY} × {LATENCY * 1000:.0f} ms")
    for name in ways:
        table.add_row(name, f"{cpu[name]:.2f}", f"{shares[name]:.0%} of {ideal:.0f} calls/s")
    console = Console()
    console.print(table)
    own = cpu["ChatModel"] - cpu["litellm as we call it"]
    console.print(f"Ours on top of litellm: {own:.2f} ms (at most {OWN_MILLISECONDS:g}).", highlight=False)
    of_litellm = shares["ChatModel"] / shares["litellm as we call it"]
    console.print(f"Throughput: {of_litellm:.0%} of litellm's alone (at least {SHARE:.0%}).", highlight=False)


def question(n: int) -> ChatRequest:
    return ChatRequest("extract", ({"role": "user", "content": f"{n} {TEXT}"},))


def ours(url: str, calls: int) -> tuple[float, float]:
    """Through `ChatModel`, nothing in the ledger yet."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        limits = Limits(LimitOptions(concurrency=CONCURRENCY))
        model = ChatModel(ModelOptions("openai/test-model", url), ledger, limits)
        wait_for(model.complete(question(-1)))
        wall, cpu = time.perf_counter(), time.process_time()
        failed = [
            answer
            for _, answer in run_concurrently(model.complete, map(question, range(calls)), "calls")
            if isinstance(answer, Exception)
        ]
        figures = 1000 * (time.process_time() - cpu) / calls, calls / (time.perf_counter() - wall)
        assert not failed, failed[0]
        ledger.close()
    return figures


def bare(url: str, calls: int) -> tuple[float, float]:
    """litellm alone, set up in the same way."""
    acompletion, where = provider.litellm().acompletion, provider.address(ModelOptions("openai/test-model", url))
    return timed(lambda n: acompletion(messages=list(question(n).messages), temperature=0, **where), calls)


def plain(url: str, calls: int) -> tuple[float, float]:
    """litellm as it comes."""
    acompletion, where = provider.litellm().acompletion, {"api_base": url, "api_key": "none"}
    return timed(lambda n: acompletion(model="openai/test-model", messages=list(question(n).messages), **where), calls)


def timed(one: Callable[[int], Awaitable[object]], calls: int) -> tuple[float, float]:
    """CPU milliseconds per call and calls per second."""

    async def all_of_them() -> tuple[float, float]:
        slots = asyncio.Semaphore(CONCURRENCY)

        async def in_turn(n: int) -> None:
            async with slots:
                await one(n)

        await one(-1)
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*map(in_turn, range(calls)))
        return 1000 * (time.process_time() - cpu) / calls, calls / (time.perf_counter() - wall)

    return asyncio.run(all_of_them())


if __name__ == "__main__":
    main()
