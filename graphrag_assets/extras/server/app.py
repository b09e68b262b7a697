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
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphrag_assets.errors import GraphRAGError, SettingsError
from graphrag_assets.extras.server.http import explained, in_one_form, raw_path
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
    """The app.

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
    app.add_exception_handler(Exception, explained)
    return _Checked(app, searches, security)


def _security(port: int, public_urls: list[str]) -> TransportSecuritySettings:
    """The values of Host and Origin that requests may have."""
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


class _Checked:
    """Refuses requests of other hosts and origins, large ones, and those without a token where one is needed."""

    def __init__(self, app: ASGIApp, searches: Searches, security: TransportSecuritySettings) -> None:
        self.searches, self.security = searches, TransportSecurityMiddleware(security)
        guarded = RequireAuthMiddleware(app, [])
        has_tokens = bool(searches.access.clients)

        async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
            is_open = not has_tokens or scope["path"] in _OPEN or self._is_signed(Request(scope))
            with contextlib.suppress(Exception):  # it is answered and in the log; uvicorn would log it unmasked
                await (app if is_open else guarded)(scope, receive, send)

        authenticated = AuthenticationMiddleware(admitted, BearerAuthBackend(searches.access))
        self.app, self.checked = app, RequestBodyLimitMiddleware(authenticated, MAX_BODY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)  # the begin and the end of the server
            return
        refused = await self.security.validate_request(Request(scope), is_post=scope["method"] == "POST")
        await (refused or self.checked)(scope, receive, _completed(send, scope["path"].startswith("/mcp")))

    def _is_signed(self, request: Request) -> bool:
        """Whether its address was signed."""
        return self.searches.access.signer(raw_path(request), request.query_params) is not None


def _completed(send: Send, is_mcp: bool) -> Send:
    """`send` with headers for browsers, and with every error but those of MCP in one form."""
    failed: Message | None = None

    async def sending(message: Message) -> None:
        nonlocal failed
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            message["headers"] = headers.raw
            if message["status"] >= 400 and not is_mcp and "html" not in headers.get("content-type", ""):
                failed = message
                return
        elif failed:  # its body is one message
            start, failed = failed, None
            body = in_one_form(start["status"], message.get("body", b""))
            headers = MutableHeaders(raw=start["headers"])
            headers["content-type"], headers["content-length"] = "application/json", str(len(body))
            await send(start)
            message = {"type": "http.response.body", "body": body}
        await send(message)

    return sending
