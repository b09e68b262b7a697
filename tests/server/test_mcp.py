"""MCP as the SDK's own client uses it: over HTTP, by the current and the 2025 protocol, and over stdio."""

import asyncio
import os
import sys
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

CALLS: dict[str, dict[str, Any]] = {
    "retrieve": {"question": "Who commanded the Great Eastern in 1865?", "k": 3},
    "ask": {"question": "Who commanded the Great Eastern in 1865?", "method": "local"},
    "context": {"question": "Who commanded the Great Eastern in 1865?"},
    "entity": {"name": "Great Eastern"},
    "neighbors": {"name": "Great Eastern", "limit": 3},
    "path": {"start": "Niagara", "end": "Great Eastern"},
    "timeline": {"name": "Niagara"},
    "evidence": {"name": "Niagara", "limit": 2},
    "communities": {"limit": 2},
    "sql": {"query": "SELECT title FROM entities WHERE title = 'Niagara'"},
}


async def _use(server: Any, mode: str) -> tuple[str, dict[str, Any], dict[str, str]]:
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == set(CALLS)
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        results = {}
        for name, arguments in CALLS.items():
            result = await client.call_tool(name, arguments)
            assert not result.is_error, f"{name}: {result.content}"
            results[name] = result.structured_content
        read = {
            uri: (await client.read_resource(uri)).contents[0].text
            for uri in ("schema://tables", "report://1", "ui://graphrag/answer.html")
        }
        wrong = await client.call_tool("entity", {"name": "Nobody Nowhere"})
        assert wrong.is_error
        assert "nearest" in wrong.content[0].text
        return client.protocol_version, results, read


def _check(results: dict[str, Any], read: dict[str, str]) -> None:
    assert "Anderson" in results["ask"]["text"]
    assert results["ask"]["citations"][0]["url"]
    assert all(row["url"] and row["text"] for row in results["retrieve"]["passages"])
    assert results["entity"]["title"] == "Great Eastern"
    assert results["path"]["path"]
    assert results["timeline"]["claims"]
    assert results["evidence"]["passages"]
    assert results["sql"]["rows"] == [["Niagara"]]
    assert "entities,title,VARCHAR" in read["schema://tables"]
    assert read["report://1"].startswith("# ")
    assert "ui/initialize" in read["ui://graphrag/answer.html"]


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_every_tool_over_http(sample_server, mode, version):
    protocol, results, read = asyncio.run(_use(f"{sample_server.url}/mcp", mode))
    assert protocol == version
    _check(results, read)


@pytest.mark.extended
def test_every_tool_over_stdio(sample_index):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "graphrag_assets", "serve", "--stdio", "--sql", "--index", str(sample_index.root / "index")],
        env=dict(os.environ),
    )
    _check(*asyncio.run(_use(server, "auto"))[1:])
