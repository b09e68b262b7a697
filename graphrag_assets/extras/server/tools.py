"""MCP: tools for agents, who bring the model. All read; only `ask` calls a chat model."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from graphrag_assets import __version__
from graphrag_assets.extras.server import lookups
from graphrag_assets.extras.server.access import EVERYONE, Client
from graphrag_assets.extras.server.http import client_of, error_of
from graphrag_assets.extras.server.searches import RankingName, Searches
from graphrag_assets.query import AnswerMethodName

_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_INSTRUCTIONS = """
A knowledge graph of documents: passages, entities, relationships, dated claims, and reports on communities of entities.
Start with `retrieve`, which finds the passages for a question, also over several links, and costs nothing. Cite
passages by document, place and, if they have one, url. Look things up by name with `entity`, `path` and `evidence`;
`communities` gives an overview. `ask` lets the server's own model write an answer with citations.
""".strip()

Rows = dict[str, Any]
Limit = Annotated[int, Field(ge=1, le=100)]


def mcp_server(searches: Searches) -> MCPServer[Any]:
    """Return the server with its tools."""
    server: MCPServer[Any] = MCPServer(
        "graphrag-assets",
        title="GraphRAG",
        instructions=_INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )

    def client_in(ctx: Context[Any, Any]) -> Client:
        """Return the client of the request; over stdio, everyone."""
        request = ctx.request_context.request
        return EVERYONE if request is None else client_of(request)

    async def look_up(ctx: Context[Any, Any], work: Callable[..., Any], *args: Any) -> Any:
        """Return what a function of `lookups` finds by its arguments after reader and scope."""
        return await _explained(searches.look_up(client_in(ctx), lambda *where: work(*where, *args)))

    @server.tool(annotations=_READS.model_copy(update={"idempotent_hint": False}), title="Ask")
    async def ask(
        ctx: Context[Any, Any], question: str, method: AnswerMethodName = "ask", filter: Rows | None = None
    ) -> Rows:
        """Return an answer with citations, written by the server's model or, without one, quoted from the documents.

        method: ask chooses; local for particular things, global for themes of all documents, drift for both.
        filter: batches, documents, entity_types, metadata, as_of and since limit the search.
        """

        async def answered() -> Rows:
            stream, footnotes = searches.ask(client_in(ctx), question, method, filter=filter)
            return footnotes.plain(await footnotes.whole(stream))

        return await _explained(answered())

    @server.tool(annotations=_READS, title="Retrieve passages")
    async def retrieve(
        ctx: Context[Any, Any],
        question: str,
        k: Limit = 10,
        method: RankingName = "graph",
        filter: Rows | None = None,
    ) -> Rows:
        """Return the passages that answer a question best, best first, with document, place and url. Calls no chat
        model.

        method: graph follows names from passage to passage, for questions with several links; text is words and
        vectors. filter: batches, documents, entity_types, metadata, as_of and since.
        """
        return await _explained(searches.retrieve(client_in(ctx), question, k, method, filter))

    @server.tool(annotations=_READS, title="Entity")
    async def entity(ctx: Context[Any, Any], name: str, limit: Limit = 20) -> Rows:
        """Return a person, place, organization or other thing by name: its description and communities, its most
        important relationships, and the dated statements about it, with the day until which each held.
        """
        return await look_up(ctx, lookups.entity, name, limit)

    @server.tool(annotations=_READS, title="Path")
    async def path(
        ctx: Context[Any, Any], start: str, end: str, max_hops: Annotated[int, Field(ge=1, le=6)] = 4
    ) -> Rows:
        """How two entities are connected: the relationships from one to the other, over the fewest steps."""
        return {"path": await look_up(ctx, lookups.path, start, end, max_hops)}

    @server.tool(annotations=_READS, title="Evidence")
    async def evidence(ctx: Context[Any, Any], name: str, limit: Limit = 10) -> Rows:
        """Return the passages that name an entity."""
        return {"passages": searches.linked(client_in(ctx), await look_up(ctx, lookups.evidence, name, limit))}

    @server.tool(annotations=_READS, title="Communities")
    async def communities(
        ctx: Context[Any, Any], level: Annotated[int, Field(ge=0, le=100)] | None = None, limit: Limit = 20
    ) -> Rows:
        """Return groups of entities with title and summary of their reports, the most important first; level 0 is
        coarsest.
        """
        return {"communities": await look_up(ctx, lookups.communities, level, limit)}

    return server


async def _explained(work: Awaitable[Any]) -> Any:
    """Return the result of `work`; its errors as those of a tool."""
    try:
        return await work
    except Exception as error:
        raise ToolError(error_of(error)["message"]) from None
