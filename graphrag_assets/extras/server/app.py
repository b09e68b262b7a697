"""The server as one Starlette app: `/`, `/api`, `/v1`, `/mcp`; and what stands before all of them.

Host, Origin, size and token of a request are checked by the MCP SDK's own parts, for all addresses alike.
"""

import functools
import hashlib
from base64 import b64encode
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from starlette.applications import Starlette
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphrag_assets.errors import GraphRAGError, SettingsError
from graphrag_assets.extras.explorer.content import page_content
from graphrag_assets.extras.explorer.page import render
from graphrag_assets.extras.server.access import USAGE_FILE, Client, Clients, Links
from graphrag_assets.extras.server.http import PlainJSON, client_of, explained, log_failure, unfiltered
from graphrag_assets.extras.server.metrics import Metrics
from graphrag_assets.extras.server.openai_api import OpenAI
from graphrag_assets.extras.server.openapi import openapi
from graphrag_assets.extras.server.rest import Rest
from graphrag_assets.extras.server.searches import Searches
from graphrag_assets.extras.server.sql import SqlQuery
from graphrag_assets.extras.server.tools import mcp_server
from graphrag_assets.query import GraphRAG

MAX_BODY = 1_000_000
_OPEN = frozenset({"/", "/healthz", "/openapi.json"})
"""Paths that need no token: they show nothing of the index."""
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}


def server_searches(
    rag: GraphRAG, clients: list[Client], public_url: str, seconds: float = 120, at_once: int = 64
) -> Searches:
    """The searches of a server on an index."""
    index = rag.index.path if rag.index.path.is_dir() else rag.index.path.parent
    known = Clients(clients, index / USAGE_FILE)
    return Searches(rag, known, Links(public_url, known), Metrics(), seconds, at_once)


def make_app(searches: Searches, host: str, port: int, public_urls: list[str], allow_sql: bool = False) -> ASGIApp:
    """The app.

    Args:
        host, port: what it is served at.
        public_urls: further addresses at which it is reached, such as https://graph.example.org.

    Raises:
        SettingsError: another address than this machine's is served without a token, or without a public URL.
    """
    is_local = host in ("127.0.0.1", "localhost", "::1")
    if not is_local and not searches.clients.clients:
        raise SettingsError(
            f"Everyone who reaches {host} could ask. Set GRAPHRAG_SERVER_TOKENS to a token "
            "(`openssl rand -hex 24` makes one), or serve 127.0.0.1."
        )
    if not is_local and not public_urls:
        raise SettingsError(
            f"Requests to {host} are checked against the addresses of the server: give --public-url, such as "
            f"http://graph.example.org:{port}; it may be repeated."
        )
    sql = SqlQuery() if allow_sql else None
    security = _security(port, public_urls)
    tools = mcp_server(searches, client_of, sql)
    app: Starlette = tools.streamable_http_app(
        stateless_http=True, transport_security=security, max_request_body_size=MAX_BODY
    )
    app.state.clients = searches.clients
    app.router.routes.extend([*_own_routes(searches), *OpenAI(searches).routes, *Rest(searches, sql).routes])
    app.add_exception_handler(GraphRAGError, explained)
    return _Checked(_Counted(app, searches.metrics), searches, security)


def _security(port: int, public_urls: list[str]) -> TransportSecuritySettings:
    """The values of Host and Origin that requests may have."""
    addresses = [urlsplit(url) for url in public_urls]
    hosts = [f"{name}:{port}" for name in _LOCAL] + [address.netloc for address in addresses]
    origins = [f"http://{name}:{port}" for name in _LOCAL]
    origins += [f"{address.scheme}://{address.netloc}" for address in addresses]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


class _Checked:
    """Refuses requests of other hosts and origins, large ones, and those without a token where one is needed."""

    def __init__(self, app: ASGIApp, searches: Searches, security: TransportSecuritySettings) -> None:
        self.searches, self.security = searches, TransportSecurityMiddleware(security)
        guarded = RequireAuthMiddleware(app, [])
        has_tokens = bool(searches.clients.clients)

        async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
            is_open = not has_tokens or scope["path"] in _OPEN or self._is_signed(Request(scope))
            await (app if is_open else guarded)(scope, receive, send)

        authenticated = AuthenticationMiddleware(admitted, BearerAuthBackend(searches.clients))
        self.app, self.checked = app, RequestBodyLimitMiddleware(authenticated, MAX_BODY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)  # the begin and the end of the server
            return
        refused = await self.security.validate_request(Request(scope), is_post=scope["method"] == "POST")
        await (refused or self.checked)(scope, receive, _with_headers(send))

    def _is_signed(self, request: Request) -> bool:
        """Whether it is a passage whose address was signed."""
        before, is_passage, text_unit = request.url.path.partition("/api/source/")
        is_passage_alone = bool(is_passage) and not before
        return is_passage_alone and self.searches.links.signer(text_unit, request.query_params) is not None


class _Counted:
    """Counts requests by path and status; answers errors of handlers."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = 0

        async def counting(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = message["status"]
                path = "/".join(scope["path"].split("/")[:3])
                self.metrics.requests.labels(path if begun != 404 else "other", begun).inc()
            await send(message)

        try:
            await self.app(scope, receive, counting)
        except Exception as error:  # Starlette has answered it, or it ended a stream; uvicorn would log it unmasked
            log_failure(error)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*message["headers"], *(pair for pair in added if pair[0] not in present)]
        await send(message)

    return sending


def _own_routes(searches: Searches) -> list[Route]:
    explorer = functools.lru_cache(1)(lambda path: render(page_content(searches.rag.index.reader())))

    async def page(request: Request) -> Response:
        text, policy = _chat_page()
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    async def explore(request: Request) -> Response:
        unfiltered(client_of(request), "The explorer")
        html = await searches.look_up(client_of(request), lambda reader, _: explorer(reader.path))
        return HTMLResponse(html, headers={"X-Frame-Options": "SAMEORIGIN"})

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def metrics(request: Request) -> Response:
        unfiltered(client_of(request), "The metrics")
        return PlainTextResponse(searches.metrics.text(), media_type="text/plain; version=0.0.4")

    async def describe(request: Request) -> Response:
        return PlainJSON(openapi(searches.links.public_url))

    return [
        Route("/", page),
        Route("/explorer", explore),
        Route("/healthz", health),
        Route("/metrics", metrics),
        Route("/openapi.json", describe),
    ]


@functools.cache
def _chat_page() -> tuple[str, str]:
    """The chat page, one file, and its policy: no other script or style than its own, no request to elsewhere."""
    static = files("graphrag_assets.extras.server") / "static"
    script = static.joinpath("chat.js").read_text(encoding="utf-8").strip()
    style = static.joinpath("chat.css").read_text(encoding="utf-8").strip()
    html = static.joinpath("chat.html").read_text(encoding="utf-8")
    hashes = (f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (script, style))
    policy = (
        "default-src 'none'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; script-src {}; style-src {}"
    ).format(*hashes)
    return html.replace("/*style*/", style).replace("/*script*/", script), policy


def describe_start(public_url: str, clients: list[Client], allow_sql: bool) -> dict[str, Any]:
    """What a started server says of itself: address by use."""
    ways = {"page": "/", "OpenAI": "/v1", "MCP": "/mcp", "API": "/openapi.json"}
    return (
        {name: f"{public_url}{path}" for name, path in ways.items()}
        | ({"tokens": ", ".join(client.name for client in clients)} if clients else {})
        | ({"SQL": "on"} if allow_sql else {})
    )
