"""Processes that share a ledger in PostgreSQL request each answer once."""

import asyncio
import signal
import subprocess
import sys
import time

import psycopg
import pytest

from graphrag_assets.llm.ledger import Ledger
from tests.llm.conftest import run
from tests.postgres import cluster

ASKER = """
import asyncio, sys
from graphrag_assets.llm.chat_client import ChatModel, ChatRequest
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_options import ChatOptions, EmbeddingOptions
ledger, where = Ledger(sys.argv[1]), {"base_url": sys.argv[2], "api_key": "none"}
model = ChatModel(ChatOptions(model="openai/test-model", **where), ledger)
embedding = EmbeddingModel(EmbeddingOptions(model="openai/test-embedding", batch_size=2, **where), ledger)
async def main():
    asked = [ChatRequest("task", ({"role": "user", "content": f"question {n}"},)) for n in range(8)]
    texts = embedding.embed([f"text {n}" for n in range(4)])
    await asyncio.gather(texts, *(model.complete(one) for one in asked))
print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""
HOLDER = """
import asyncio, sys
from graphrag_assets.llm.ledger import Ledger
async def main():
    async with Ledger(sys.argv[1]).claim("key"):
        print("claimed", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def url():
    with cluster() as socket:
        with psycopg.connect(host=str(socket), user="postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE ledger")
        yield f"postgresql+psycopg://postgres@/ledger?host={socket}"


@pytest.mark.extended
def test_two_processes_pay_for_no_question_and_no_vector_twice(url, openai_server):
    openai_server.latency = 0.3
    start = [sys.executable, "-c", ASKER, url, openai_server.url]
    askers = [subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [asker.stdout.readline() for asker in askers] == ["ready\n"] * 2
    for asker in askers:
        asker.stdin.write("go\n")
        asker.stdin.flush()
    assert [asker.wait(180) for asker in askers] == [0, 0]
    assert len(openai_server.requests) == 8 + 2  # two texts in a request


@pytest.mark.extended
def test_the_claim_of_a_killed_process_is_free(url):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, url], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "claimed\n"
    ledger = Ledger(url)

    async def claim() -> float:
        async with ledger.claim("key"):
            return time.monotonic()

    async def wait() -> tuple[float, float]:
        waiting = asyncio.ensure_future(claim())
        await asyncio.sleep(1.5)
        assert not waiting.done()
        holder.send_signal(signal.SIGKILL)
        return time.monotonic(), await waiting

    killed, claimed = run(wait())
    assert claimed - killed < 10
    ledger.close()


@pytest.mark.extended
def test_the_claim_of_a_stopped_process_is_passed_over_with_a_warning(url, caplog):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, url], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "claimed\n"
    holder.send_signal(signal.SIGSTOP)
    ledger = Ledger(url)

    async def claim() -> float:
        began = time.monotonic()
        async with ledger.claim("key", patience=2):
            return time.monotonic() - began

    try:
        assert 2 <= run(claim()) < 10
        assert "It seems to hang" in caplog.text
    finally:
        holder.kill()
        holder.wait()
        ledger.close()


def test_a_ledger_in_sqlite_needs_no_claims(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")

    async def both() -> bool:
        async with ledger.claim("key"), ledger.claim("key"):
            return True

    assert run(both())
