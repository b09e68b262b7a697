"""MCP: tools for agents, who bring the model. All read; `retrieve` and the lookups call no model."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Literal

import anyio
from mcp.server.apps import Apps
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from graphrag_assets import __version__
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.extras.server import lookups
from graphrag_assets.extras.server.access import EVERYONE, Client, in_words
from graphrag_assets.extras.server.http import error_of, unfiltered
from graphrag_assets.extras.server.searches import Ask, MethodName, Retrieve, Searches
from graphrag_assets.extras.server.sql import SqlQuery
from graphrag_assets.query.filters import Scope
from graphrag_assets.store.publication_reader import Reader

_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_FRESH_MS = 60_000
"""For which a client may keep lists and resources: a new publication may replace them."""
_ANSWER_PAGE = "ui://graphrag/answer.html"
_INSTRUCTIONS = """
A knowledge graph of documents: passages, entities, relationships, dated claims, and reports on communities of entities.
Start with `retrieve`, which finds the passages for a question, also over several links, and costs nothing. Cite
passages by document, place and url. Look things up by name with `entity`, `neighbors`, `path`, `timeline` and
`evidence`; `communities` gives an overview. `ask` lets the server's own model write an answer with citations, and
`context` gives what it would read.
""".strip()
_SCHEMA = """
SELECT table_name, column_name, data_type, comment FROM duckdb_columns()
WHERE database_name = 'published' AND schema_name = 'main' ORDER BY table_name, column_index
"""

Rows = dict[str, Any]


def mcp_server(searches: Searches, client_of: Callable[[Any], Client], sql: SqlQuery | None) -> MCPServer[Any]:
    """The server with its tools and resources.

    Args:
        client_of: the client of an HTTP request.
        sql: runs queries; None: there is no such tool.
    """
    apps = Apps()
    asking = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=False)

    @apps.tool(resource_uri=_ANSWER_PAGE, annotations=asking, title="Ask")
    async def ask(
        ctx: Context[Any, Any], question: str, method: MethodName = "ask", filter: Rows | None = None
    ) -> Rows:
        """An answer with citations, written by the server's model or, without one, quoted from the documents.

        method: ask chooses; local for particular things, global for themes of all documents, drift for both.
        filter: batches, documents, entity_types, metadata, as_of and since limit the search.
        """
        client = _client(ctx, client_of)
        asked = _checked(Ask, question=question, method=method, filter=filter or {})
        plain = searches.footnotes(client).plain(await _answered(searches.answer(client, asked)))
        kept = ("text", "citations", "graph", "method", "model", "publication", "seconds")
        return _plain({name: plain[name] for name in kept})

    apps.add_html_resource(
        _ANSWER_PAGE,
        (files("graphrag_assets.extras.server") / "static" / "answer.html").read_text(encoding="utf-8"),
        title="Answer with its citations",
    )
    server: MCPServer[Any] = MCPServer(
        "graphrag-assets",
        title="GraphRAG",
        instructions=_INSTRUCTIONS,
        version=__version__,
        extensions=[apps],
        log_level="WARNING",
        cache_hints={
            "tools/list": CacheHint(_FRESH_MS, "private"),
            "resources/list": CacheHint(_FRESH_MS, "private"),
            "resources/templates/list": CacheHint(_FRESH_MS, "private"),
            "resources/read": CacheHint(_FRESH_MS, "private"),
        },
    )

    async def look_up(ctx: Context[Any, Any], work: Callable[[Reader, Scope], Any]) -> Any:
        return await _answered(searches.look_up(_client(ctx, client_of), work))

    @server.tool(annotations=_READS, title="Retrieve passages")
    async def retrieve(
        ctx: Context[Any, Any],
        question: str,
        k: int = 10,
        method: Literal["graph", "text", "words", "vectors"] = "graph",
        filter: Rows | None = None,
    ) -> Rows:
        """The passages that answer a question best, best first, with document, place and url. Calls no chat model.

        method: graph follows names from passage to passage, for questions with several links; text is words and
        vectors. filter: batches, documents, entity_types, metadata, as_of and since.
        """
        asked = _checked(Retrieve, question=question, k=k, method=method, filter=filter or {})
        return {"passages": _plain(await _answered(searches.retrieve(_client(ctx, client_of), asked)))}

    @server.tool(annotations=_READS, title="Context of a question")
    async def context(
        ctx: Context[Any, Any], question: str, method: MethodName = "local", filter: Rows | None = None
    ) -> Rows:
        """What a model would read to answer: tables of reports, entities, relationships, claims and passages."""
        asked = _checked(Ask, question=question, method=method, filter=filter or {})
        found = await _answered(searches.context(_client(ctx, client_of), asked))
        return {"text": found.text, "tokens": found.tokens}

    @server.tool(annotations=_READS, title="Entity")
    async def entity(ctx: Context[Any, Any], name: str) -> Rows:
        """A person, place, organization or other thing by name: description, relationships and communities."""
        return _plain(await look_up(ctx, lambda reader, scope: lookups.entity(reader, scope, name)))

    @server.tool(annotations=_READS, title="Neighbors")
    async def neighbors(ctx: Context[Any, Any], name: str, limit: int = 30) -> Rows:
        """The relationships of an entity, the most important first."""
        rows = await look_up(
            ctx, lambda reader, scope: lookups.relationships(reader, scope, name, min(max(limit, 1), 100))
        )
        return {"relationships": rows}

    @server.tool(annotations=_READS, title="Path")
    async def path(ctx: Context[Any, Any], start: str, end: str, max_hops: int = 4) -> Rows:
        """How two entities are connected: the relationships from one to the other, over the fewest steps."""
        rows = await look_up(
            ctx, lambda reader, scope: lookups.path(reader, scope, start, end, min(max(max_hops, 1), 6))
        )
        return {"path": rows}

    @server.tool(annotations=_READS, title="Timeline")
    async def timeline(ctx: Context[Any, Any], name: str) -> Rows:
        """The dated statements about an entity, and until when each held."""
        return {"claims": _plain(await look_up(ctx, lambda reader, scope: lookups.timeline(reader, scope, name)))}

    @server.tool(annotations=_READS, title="Evidence")
    async def evidence(ctx: Context[Any, Any], name: str, limit: int = 10) -> Rows:
        """The passages that name an entity."""
        rows = await look_up(ctx, lambda reader, scope: lookups.evidence(reader, scope, name, min(max(limit, 1), 50)))
        client = _client(ctx, client_of)
        linked = [row | {"url": searches.links.passage(client, row["text_unit_id"])} for row in rows]
        return {"passages": _plain(linked)}

    @server.tool(annotations=_READS, title="Communities")
    async def communities(ctx: Context[Any, Any], level: int | None = None, limit: int = 20) -> Rows:
        """Groups of entities with title and summary of their reports, the most important first; level 0 is coarsest."""
        rows = await look_up(
            ctx, lambda reader, scope: lookups.communities(reader, scope, level, min(max(limit, 1), 100))
        )
        return {"communities": rows}

    if sql is not None:
        query_tables = sql

        @server.tool(name="sql", annotations=_READS, title="SQL")
        async def run_sql(ctx: Context[Any, Any], query: str) -> Rows:
            """One SELECT in DuckDB's SQL on the tables of the resource schema://tables."""
            try:
                unfiltered(_client(ctx, client_of), "SQL")
            except GraphRAGError as error:
                raise ToolError(str(error)) from None
            found: Rows = await look_up(ctx, lambda reader, _: query_tables(reader, query))
            return found

    @server.resource("schema://tables", title="Tables and columns", mime_type="text/csv")
    async def schema() -> str:
        """The tables of the index with the types and comments of their columns, as CSV."""
        return await anyio.to_thread.run_sync(lambda: searches.rag.index.reader().rows(_SCHEMA).write_csv())

    @server.resource("report://{number}", title="Report", mime_type="text/markdown")
    async def report(number: str, ctx: Context[Any, Any]) -> str:
        """The report on a community, by its human_readable_id."""
        client = _client(ctx, client_of)
        if not number.isdigit():
            raise ResourceNotFoundError(f"There is no report {number!r}.")
        try:
            found = await searches.look_up(client, lambda reader, scope: lookups.report(reader, scope, int(number)))
        except lookups.NotFoundError as error:
            raise ResourceNotFoundError(str(error)) from None
        return str(found["full_content"])

    return server


def _client(ctx: Context[Any, Any], client_of: Callable[[Any], Client]) -> Client:
    """The client of the request; over stdio, everyone."""
    request = ctx.request_context.request
    return EVERYONE if request is None else client_of(request)


def _checked(kind: Any, **given: Any) -> Any:
    try:
        return kind(**given)
    except ValidationError as error:
        raise ToolError(in_words(error)) from None


async def _answered(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except Exception as error:
        raise ToolError(error_of(error)["message"]) from None


def _plain(value: Any) -> Any:
    """The value with dates as text, which JSON has no form for."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
