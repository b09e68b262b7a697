"""The page to ask at, which talks to `/v1`; and what its links open: passages, the explorer."""

import functools
import hashlib
import html
import re
from base64 import b64encode
from importlib.resources import files
from string import Template
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from graphrag_assets.errors import InvalidOption
from graphrag_assets.extras.explorer.content import page_content
from graphrag_assets.extras.explorer.page import render
from graphrag_assets.extras.server import lookups
from graphrag_assets.extras.server.access import Client
from graphrag_assets.extras.server.http import ForbiddenError, client_of, raw_path
from graphrag_assets.extras.server.searches import Searches
from graphrag_assets.query.methods import SEARCH_METHODS

_STATIC = files("graphrag_assets.extras.server") / "static"
_PASSAGE = Template((_STATIC / "passage.html").read_text(encoding="utf-8"))
_SPAN = re.compile(r"[0-9]{1,9}-[0-9]{1,9}")
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
            Route("/source/{text_unit}", self.source),
        ]

    async def page(self, request: Request) -> Response:
        text, policy = _chat_page()
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    def _reader_of(self, request: Request) -> Client:
        """Return the client for whom the address was signed, or whose token the request has."""
        return self.searches.access.signer(raw_path(request), request.query_params) or client_of(request)

    async def explorer(self, request: Request) -> Response:
        client = self._reader_of(request)
        if client.filter is not None:
            raise ForbiddenError("The explorer is of the whole index, and this token may see a part of it.")
        page = await self.searches.look_up(client, lambda reader, _: self._explorer(reader.path))
        return HTMLResponse(page, headers={"X-Frame-Options": "SAMEORIGIN"})

    async def health(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def source(self, request: Request) -> Response:
        """Return the page of a passage, or that it is gone."""
        text_unit, client = request.path_params["text_unit"], self._reader_of(request)
        span = request.query_params.get("span", "0-0")
        if not _SPAN.fullmatch(span):
            raise InvalidOption("span is two numbers of characters, such as 10-20.")
        begin, stop = map(int, span.split("-"))
        row = await self.searches.look_up(client, lambda reader, scope: lookups.passage(reader, scope, text_unit))
        gone = _gone(request.query_params.get("publication", ""))
        page = _passage_page(row, begin, stop) if row else _passage_page(gone, 0, 0)
        framed = {"Content-Security-Policy": _PASSAGE_POLICY, "X-Frame-Options": "SAMEORIGIN"}
        return HTMLResponse(page, 200 if row else 404, framed)


@functools.cache
def _chat_page() -> tuple[str, str]:
    """Return chat page, one file, and its policy: no other script or style than its own, no request to elsewhere."""
    script, style, page = (
        _STATIC.joinpath(name).read_text(encoding="utf-8") for name in ("chat.js", "chat.css", "chat.html")
    )
    methods = (f'<option value="{name}">{name}: {method.use}</option>' for name, method in SEARCH_METHODS.items())
    page = page.replace("/*style*/", style).replace("/*script*/", script).replace("<!--methods-->", "".join(methods))
    hashes = (f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (script, style))
    policy = (
        "default-src 'none'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; script-src {}; style-src {}"
    ).format(*hashes)
    return page, policy


def _gone(publication: str) -> dict[str, Any]:
    """Return what is shown of a text unit that the index does not have, or does not show to the client."""
    was = f" It was in publication {publication} of the index." if publication.isdecimal() else ""
    text = f"The index does not have this passage: its document has changed since, or is gone.{was}"
    return {"document": "This passage is gone", "text": text}


def _passage_page(row: dict[str, Any], begin: int, stop: int) -> str:
    """Return the page of a passage with these characters of it marked."""
    text = row["text"]
    where = ", ".join(str(row[name]) for name in ("source", "place", "document_date") if row.get(name))
    return _PASSAGE.substitute(
        title=html.escape(row["document"] or "Passage"),
        where=html.escape(where),
        context=html.escape(row.get("context") or ""),
        before=html.escape(text[:begin]),
        marked=html.escape(text[begin:stop]),
        after=html.escape(text[max(begin, stop) :]),
    )
