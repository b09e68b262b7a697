"""The server as one Starlette app: the page, `/v1`, `/mcp`; and what stands before all of them.

Host, Origin, size and token of a request are checked by the MCP SDK's own parts, for all addresses alike.
"""

import contextlib
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphrag_assets.errors import GraphRAGError, SettingsError
from graphrag_assets.extras.server.access import Access
from graphrag_assets.extras.server.http import explained, raw_path
from graphrag_assets.extras.server.openai_api import OpenAI
from graphrag_assets.extras.server.page import Page
from graphrag_assets.extras.server.searches import Searches
from graphrag_assets.extras.server.tools import mcp_server

MAX_BODY = 1_000_000
_OPEN = frozenset({"/", "/healthz"})
"""Paths that need no token: they show nothing of the index."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}


def make_app(searches: Searches, host: str, port: int, public_urls: list[str]) -> ASGIApp:
    """Return the app.

    Args:
        host, port: what it is served at.
        public_urls: further addresses at which it is reached, such as https://graph.example.org.

    Raises:
        SettingsError: another address than this machine's is served without a token, or without a public URL.
    """
    is_local = host in ("127.0.0.1", "localhost", "::1")
    if not is_local and not searches.access.clients:
        raise SettingsError(
            f"Everyone who reaches {host} could ask. Set GRAPHRAG_SERVER_TOKENS to a token "
            "(`openssl rand -hex 24` makes one), or serve 127.0.0.1."
        )
    if not is_local and not public_urls:
        raise SettingsError(
            f"Requests to {host} are checked against the addresses of the server: give --public-url, such as "
            f"http://graph.example.org:{port}; it may be repeated."
        )
    security = _security(port, public_urls)
    app: Starlette = mcp_server(searches).streamable_http_app(
        stateless_http=True, transport_security=security, max_request_body_size=MAX_BODY
    )
    app.state.access = searches.access
    app.router.routes.extend([*Page(searches).routes, *OpenAI(searches).routes])
    app.add_exception_handler(GraphRAGError, explained)
    app.add_exception_handler(HTTPException, explained)
    app.add_exception_handler(Exception, explained)
    return _checked(app, searches.access, TransportSecurityMiddleware(security))


def _security(port: int, public_urls: list[str]) -> TransportSecuritySettings:
    """Return the values of Host and Origin that requests may have."""
    addresses = [urlsplit(url) for url in [*(f"http://{name}:{port}" for name in _LOCAL), *public_urls]]
    hosts, origins = list[str](), list[str]()
    for address in addresses:
        names = {address.netloc}
        if address.port in (None, _DEFAULT_PORTS.get(address.scheme)):  # clients leave it out, most of them
            name = address.netloc.removesuffix(f":{address.port}")
            names = {name, f"{name}:{_DEFAULT_PORTS.get(address.scheme)}"}
        hosts += names
        origins += [f"{address.scheme}://{name}" for name in names]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


def _checked(app: ASGIApp, access: Access, security: TransportSecurityMiddleware) -> ASGIApp:
    """Return the app behind what refuses other hosts and origins, large requests, and those without a token that need
    one.
    """
    guarded = RequireAuthMiddleware(app, [])

    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        is_open = not access.clients or scope["path"] in _OPEN
        is_open = is_open or access.signer(raw_path(request), request.query_params) is not None
        with contextlib.suppress(Exception):  # it is answered and in the log; uvicorn would log it unmasked
            await (app if is_open else guarded)(scope, receive, send)

    limited = RequestBodyLimitMiddleware(AuthenticationMiddleware(admitted, BearerAuthBackend(access)), MAX_BODY)

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                message["headers"] = headers.raw
            await send(message)

        if scope["type"] != "http":
            await app(scope, receive, send)  # the begin and the end of the server
            return
        refusal = await security.validate_request(Request(scope), is_post=scope["method"] == "POST")
        await (refusal or limited)(scope, receive, with_headers)

    return checked
