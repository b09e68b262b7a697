"""MCP as the SDK's own client uses it: over HTTP, by the current and the 2025 protocol, and over stdio."""

import asyncio
import itertools
import os
import sys
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from graphrag_assets.extras.server import lookups
from graphrag_assets.query.scope import EVERYTHING
from tests.server.conftest import QUESTION

CALLS: dict[str, dict[str, Any]] = {
    "retrieve": {"question": QUESTION, "k": 3},
    "ask": {"question": QUESTION, "method": "local"},
    "entity": {"name": "Great Eastern", "limit": 5},
    "path": {"start": "Niagara", "end": "Great Eastern"},
    "evidence": {"name": "Niagara", "limit": 2},
    "communities": {"limit": 3, "level": 0},
}


async def _use(server: Any, mode: str = "auto") -> tuple[str, dict[str, Any]]:
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == set(CALLS)
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        results = {}
        for name, arguments in CALLS.items():
            result = await client.call_tool(name, arguments)
            assert not result.is_error, f"{name}: {result.content}"
            results[name] = result.structured_content
        for name, arguments, said in (
            ("entity", {"name": "Nobody Nowhere"}, "nearest"),
            ("retrieve", {"question": "x", "k": 1_000_000}, "100"),
            ("retrieve", {"question": "x", "method": "vectors"}, "no vectors"),
            ("ask", {"question": "x", "filter": {"batchs": ["nowhere"]}}, "batchs"),
        ):
            wrong = await client.call_tool(name, arguments)
            assert wrong.is_error
            assert said in wrong.content[0].text
        return client.protocol_version, results


def _check(results: dict[str, Any], has_links: bool = True) -> None:
    assert "Anderson" in results["ask"]["text"]
    rows = [*results["ask"]["citations"], *results["retrieve"]["passages"], *results["evidence"]["passages"]]
    assert {bool(row["url"]) for row in rows} == {has_links}
    assert all(row["text"] for row in results["retrieve"]["passages"])
    entity = results["entity"]
    assert entity["title"] == "Great Eastern"
    assert entity["communities"]
    assert 0 < len(entity["relationships"]) <= 5
    dates = [claim["start_date"] for claim in entity["claims"] if claim["start_date"]]
    assert dates
    assert dates == sorted(dates)
    ends = [{row["source"], row["target"]} for row in results["path"]["path"]]
    assert "Niagara" in ends[0]
    assert "Great Eastern" in ends[-1]
    assert all(one & two for one, two in itertools.pairwise(ends))
    assert ["Niagara" in row["text"] for row in results["evidence"]["passages"]] == [True, True]
    assert [row["level"] for row in results["communities"]["communities"]] == [0, 0, 0]


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_every_tool_over_http(sample_server, mode, version):
    protocol, results = asyncio.run(_use(f"{sample_server.url}/mcp", mode))
    assert protocol == version
    _check(results)


@pytest.mark.extended
def test_every_tool_over_stdio(sample_index):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "graphrag_assets", "serve", "--stdio", "--index", str(sample_index.root / "index")],
        env=dict(os.environ),
    )
    _check(asyncio.run(_use(server))[1], has_links=False)


def test_a_path_takes_the_heaviest_of_the_last_steps(sample_server):
    reader = sample_server.searches.rag.index.reader()
    start, end, heaviest = reader.query("""
        SELECT a.entity AS first, b.neighbor AS last, max(r.weight) AS heaviest
        FROM search.edges a JOIN search.edges b ON a.neighbor = b.entity AND a.entity <> b.neighbor
        JOIN relationships r ON r.human_readable_id = b.relationship
        ANTI JOIN search.edges direct ON direct.entity = a.entity AND direct.neighbor = b.neighbor
        GROUP BY ALL HAVING count(DISTINCT r.weight) > 1 ORDER BY ALL
    """).row(0)
    path = lookups.path(reader, EVERYTHING, str(start), str(end))
    assert len(path) == 2
    assert path[-1]["weight"] == pytest.approx(heaviest, abs=0.01)
