"""The page to ask at, and the addresses that it needs: its stream of an answer, passages, the explorer, the state."""

import functools
import hashlib
import html
from base64 import b64encode
from collections.abc import AsyncIterator
from importlib.resources import files
from string import Template
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from graphrag_assets.extras.explorer.content import page_content
from graphrag_assets.extras.explorer.page import render
from graphrag_assets.extras.server import lookups
from graphrag_assets.extras.server.access import Client
from graphrag_assets.extras.server.http import (
    ForbiddenError,
    PlainJSON,
    as_json,
    body_of,
    client_of,
    error_of,
    event_stream,
)
from graphrag_assets.extras.server.searches import Ask, Searches

_STATIC = files("graphrag_assets.extras.server") / "static"
_PASSAGE = Template((_STATIC / "passage.html").read_text(encoding="utf-8"))
_PASSAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Page:
    """The handlers."""

    def __init__(self, searches: Searches) -> None:
        self.searches = searches
        self._explorer = functools.lru_cache(1)(lambda path: render(page_content(searches.rag.index.reader())))

    @property
    def routes(self) -> list[Route]:
        """Address, method and handler."""
        return [
            Route("/", self.page),
            Route("/explorer", self.explorer),
            Route("/healthz", self.health),
            Route("/api/query/stream", self.stream, methods=["POST"]),
            Route("/api/source/{text_unit}", self.source),
            Route("/api/status", self.status),
        ]

    async def page(self, request: Request) -> Response:
        text, policy = _chat_page()
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    async def explorer(self, request: Request) -> Response:
        client = client_of(request)
        if client.filter is not None:
            raise ForbiddenError("The explorer is of the whole index, and this token may see a part of it.")
        page = await self.searches.look_up(client, lambda reader, _: self._explorer(reader.path))
        return HTMLResponse(page, headers={"X-Frame-Options": "SAMEORIGIN"})

    async def health(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def stream(self, request: Request) -> Response:
        ask, client = await body_of(request, Ask), client_of(request)
        return event_stream(self._events(client, ask), self.searches.rag.aclose)

    async def _events(self, client: Client, ask: Ask) -> AsyncIterator[dict[str, Any]]:
        """Events `status`, `token`, `answer` or `error`, and `done`; their data is JSON."""
        footnotes = self.searches.footnotes(client)
        yield {"event": "status", "data": as_json({"method": ask.method})}
        try:
            async with self.searches.stream(client, ask) as stream:
                async for piece in stream:
                    if text := footnotes.feed(piece):
                        yield {"event": "token", "data": as_json({"text": text})}
            if text := footnotes.end():
                yield {"event": "token", "data": as_json({"text": text})}
            yield {"event": "answer", "data": as_json(footnotes.plain(stream.result))}
        except Exception as error:
            yield {"event": "error", "data": as_json(error_of(error))}
        yield {"event": "done", "data": "{}"}

    async def source(self, request: Request) -> Response:
        """The passage of a text unit: a page for browsers, JSON for the chat page."""
        text_unit = request.path_params["text_unit"]
        client = self.searches.access.signer(text_unit, request.query_params) or client_of(request)
        row = await self.searches.look_up(client, lambda reader, scope: lookups.passage(reader, scope, text_unit))
        if "text/html" not in request.headers.get("accept", ""):
            return PlainJSON(row)
        page = _passage_page(row, request.query_params.get("span", ""))
        return HTMLResponse(page, headers={"Content-Security-Policy": _PASSAGE_POLICY})

    async def status(self, request: Request) -> Response:
        """The number of the publication, and whether the client may see all of it."""
        client = client_of(request)
        publication = await self.searches.look_up(client, lambda reader, _: reader.publication)
        return PlainJSON({"publication": publication, "whole": client.filter is None})


@functools.cache
def _chat_page() -> tuple[str, str]:
    """The chat page, one file, and its policy: no other script or style than its own, no request to elsewhere."""
    script, style, page = (
        _STATIC.joinpath(name).read_text(encoding="utf-8") for name in ("chat.js", "chat.css", "chat.html")
    )
    page = page.replace("/*style*/", style).replace("/*script*/", script)
    hashes = (f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (script, style))
    policy = (
        "default-src 'none'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; script-src {}; style-src {}"
    ).format(*hashes)
    return page, policy


def _passage_page(row: dict[str, Any], span: str) -> str:
    """The page of a passage with the characters `span` of its document marked."""
    text, first = row["text"], row["start_char"] or 0
    start, _, end = span.partition("-")
    at = (int(start) - first, int(end) - first) if start.isdigit() and end.isdigit() else (0, 0)
    begin, stop = (max(0, min(place, len(text))) for place in at)
    where = ", ".join(str(part) for part in (row["source"], row["place"], row["document_date"]) if part)
    return _PASSAGE.substitute(
        title=html.escape(row["document"] or "Passage"),
        where=html.escape(where),
        context=html.escape(row["context"] or ""),
        before=html.escape(text[:begin]),
        marked=html.escape(text[begin:stop]),
        after=html.escape(text[stop:]),
    )
