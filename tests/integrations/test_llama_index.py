"""The nodes that our retriever for LlamaIndex returns, in an environment with LlamaIndex."""

import os
import subprocess
from pathlib import Path

import pytest

from ..conftest import Project
from ..environments import environment_with
from ..test_docs import blocks

SCRIPT = """
import asyncio, math, os, sys, threading
from llama_index.core.schema import MetadataMode, NodeRelationship, QueryBundle
from graphrag_assets.integrations.llama_index import GraphRAGRetriever
from graphrag_assets.query import Answerer, Filter, GraphRAG

QUESTION, BATCH = "Who commanded the Great Eastern in 1865?", "1-beginnings"
with GraphRAG(sys.argv[1]) as rag:
    rows = rag.retrieve(QUESTION, k=3).to_dicts()
    retriever = GraphRAGRetriever(rag, k=3)
    nodes = retriever.retrieve(QUESTION)
    assert [(node.node_id, node.text) for node in nodes] == [(r["id"], r["text"]) for r in rows]
    assert all(math.isclose(node.score, r["score"]) for node, r in zip(nodes, rows, strict=True))
    first, row = nodes[0].node, rows[0]
    assert (first.start_char_idx, first.end_char_idx) == (row["start_char"], row["end_char"])
    assert first.relationships[NodeRelationship.SOURCE].node_id == row["document_id"]
    assert first.metadata["entities"] == row["entities"] and "James Anderson" in row["entities"]
    prompt = first.get_content(MetadataMode.LLM)
    assert row["document"] in prompt and row["id"] not in prompt

    # Asynchronous: the loop of the caller goes on while the search runs.
    async def both():
        ticks = 0
        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)
        ticking = asyncio.create_task(tick())
        limited = GraphRAGRetriever(rag, k=3, filter=Filter(batches=[BATCH]))
        found = await asyncio.gather(retriever.aretrieve(QUESTION), limited.aretrieve(QueryBundle(QUESTION)))
        ticking.cancel()
        return found, ticks
    (same, limited), ticks = asyncio.run(both())
    assert [node.node_id for node in same] == [node.node_id for node in nodes]
    assert {node.metadata["source"].partition("/")[0] for node in limited} == {BATCH}
    assert ticks > 10, ticks
print("passed")
"""


@pytest.mark.extended
def test_nodes_are_passages_with_their_places_and_are_awaited(sample_index: Project, shared_folder: Path) -> None:
    python = environment_with(shared_folder / "llama-index", "llama-index-core")
    (example,) = (block for block in blocks("docs/exchange.md", "python") if "integrations.llama_index" in block)
    command = [str(python), "-c", f"{SCRIPT}\n{example}", str(sample_index.root / "index")]
    environment = {**os.environ, "GRAPHRAG_DATA": str(sample_index.root)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    passed, *shown = run.stdout.splitlines()
    assert passed == "passed"
    assert any("The cable lost: the expedition of 1865" in line for line in shown)
