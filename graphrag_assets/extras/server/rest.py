"""`/api`: questions, passages and lookups for programs, and the page of a passage."""

import contextlib
import html
from collections.abc import AsyncIterator
from importlib.resources import files
from string import Template
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from graphrag_assets.errors import InvalidOption
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
    unfiltered,
)
from graphrag_assets.extras.server.searches import Ask, Retrieve, Searches, until_disconnect
from graphrag_assets.extras.server.sql import SqlQuery

_PASSAGE = Template((files("graphrag_assets.extras.server") / "static" / "passage.html").read_text(encoding="utf-8"))
PASSAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class SqlRequest(BaseModel):
    """One SELECT."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(max_length=20_000)


class Rest:
    """The handlers of `/api`.

    Args:
        sql: runs queries of clients; None refuses them.
    """

    def __init__(self, searches: Searches, sql: SqlQuery | None) -> None:
        self.searches, self.sql = searches, sql

    @property
    def routes(self) -> list[Route]:
        """Address, method and handler."""
        return [
            Route("/api/query", self.query, methods=["POST"]),
            Route("/api/query/stream", self.stream, methods=["POST"]),
            Route("/api/retrieve", self.retrieve, methods=["POST"]),
            Route("/api/context", self.context, methods=["POST"]),
            Route("/api/sql", self.run_sql, methods=["POST"]),
            Route("/api/entities", self.entities),
            Route("/api/entities/{name:path}/relationships", self.relationships),
            Route("/api/entities/{name:path}/timeline", self.timeline),
            Route("/api/entities/{name:path}/evidence", self.evidence),
            Route("/api/entities/{name:path}", self.entity),
            Route("/api/path", self.path),
            Route("/api/communities", self.communities),
            Route("/api/reports/{number:int}", self.report),
            Route("/api/source/{text_unit}", self.source),
            Route("/api/status", self.status),
        ]

    async def query(self, request: Request) -> Response:
        ask, client = await body_of(request, Ask), client_of(request)
        answer = await until_disconnect(request.receive, self.searches.answer(client, ask))
        return PlainJSON(self.searches.footnotes(client).plain(answer))

    async def stream(self, request: Request) -> Response:
        ask, client = await body_of(request, Ask), client_of(request)
        return event_stream(self._events(client, ask))

    async def _events(self, client: Client, ask: Ask) -> AsyncIterator[dict[str, Any]]:
        """Events `status`, `context`, `token`, `answer` or `error`, and `done`; their data is JSON."""
        footnotes = self.searches.footnotes(client)
        yield {"event": "status", "data": as_json({"method": ask.method})}
        try:
            async with contextlib.aclosing(self.searches.events(client, ask)) as events:
                async for event in events:
                    if event.name == "context":
                        rows = event.value.to_dict()["rows"]
                        yield {"event": "context", "data": as_json({"rows": rows, "tokens": event.value.tokens})}
                    elif event.name == "token" and (text := footnotes.feed(event.value)):
                        yield {"event": "token", "data": as_json({"text": text})}
                    elif event.name == "answer":
                        if text := footnotes.end():
                            yield {"event": "token", "data": as_json({"text": text})}
                        yield {"event": "answer", "data": as_json(footnotes.plain(event.value))}
        except Exception as error:
            yield {"event": "error", "data": as_json(error_of(error))}
        yield {"event": "done", "data": "{}"}

    async def retrieve(self, request: Request) -> Response:
        ask, client = await body_of(request, Retrieve), client_of(request)
        return PlainJSON({"passages": await until_disconnect(request.receive, self.searches.retrieve(client, ask))})

    async def context(self, request: Request) -> Response:
        ask, client = await body_of(request, Ask), client_of(request)
        found = await until_disconnect(request.receive, self.searches.context(client, ask))
        return PlainJSON(found.to_dict())

    async def run_sql(self, request: Request) -> Response:
        asked, client = await body_of(request, SqlRequest), client_of(request)
        if self.sql is None:
            raise ForbiddenError("SQL is off. Start the server with --sql.")
        unfiltered(client, "SQL")
        return PlainJSON(await self.searches.look_up(client, lambda reader, _: self.sql(reader, asked.query)))  # type: ignore[misc]

    async def entities(self, request: Request) -> Response:
        text, limit = request.query_params.get("q", ""), _number(request, "limit", 10)
        found = await self._look_up(request, lambda r, s: lookups.find_entities(r, s, text, limit))
        return PlainJSON({"entities": found})

    async def entity(self, request: Request) -> Response:
        return PlainJSON(await self._look_up(request, lambda r, s: lookups.entity(r, s, _name(request))))

    async def relationships(self, request: Request) -> Response:
        limit = _number(request, "limit", 30)
        found = await self._look_up(request, lambda r, s: lookups.relationships(r, s, _name(request), limit))
        return PlainJSON({"relationships": found})

    async def timeline(self, request: Request) -> Response:
        return PlainJSON({"claims": await self._look_up(request, lambda r, s: lookups.timeline(r, s, _name(request)))})

    async def evidence(self, request: Request) -> Response:
        client, limit = client_of(request), _number(request, "limit", 10)
        found = await self._look_up(request, lambda r, s: lookups.evidence(r, s, _name(request), limit))
        links = self.searches.links
        return PlainJSON({"passages": [row | {"url": links.passage(client, row["text_unit_id"])} for row in found]})

    async def path(self, request: Request) -> Response:
        start, end = (request.query_params.get(name, "") for name in ("from", "to"))
        if not start or not end:
            raise InvalidOption("Give two entities: /api/path?from=…&to=…")
        most = _number(request, "max_hops", 4, 6)
        return PlainJSON({"path": await self._look_up(request, lambda r, s: lookups.path(r, s, start, end, most))})

    async def communities(self, request: Request) -> Response:
        level, limit = request.query_params.get("level"), _number(request, "limit", 30)
        at = None if level is None else _number(request, "level", 0)
        found = await self._look_up(request, lambda r, s: lookups.communities(r, s, at, limit))
        return PlainJSON({"communities": found})

    async def report(self, request: Request) -> Response:
        number = int(request.path_params["number"])
        return PlainJSON(await self._look_up(request, lambda r, s: lookups.report(r, s, number)))

    async def source(self, request: Request) -> Response:
        """The passage of a text unit: a page for browsers, JSON for programs."""
        text_unit = request.path_params["text_unit"]
        client = self.searches.links.signer(text_unit, request.query_params) or client_of(request)
        row = await self.searches.look_up(client, lambda r, s: lookups.passage(r, s, text_unit))
        if "text/html" not in request.headers.get("accept", ""):
            return PlainJSON(row)
        return HTMLResponse(
            _page(row, request.query_params.get("span", "")), headers={"Content-Security-Policy": PASSAGE_POLICY}
        )

    async def status(self, request: Request) -> Response:
        client = client_of(request)
        model, sql = self.searches.rag.answerer.model, self.sql is not None and client.filter is None

        def found(reader: Any, _: Any) -> dict[str, Any]:
            known = {"publication": reader.publication} if client.filter else lookups.status(reader)
            return known | {"model": model, "sql": sql, "has_vectors": reader.embedding is not None}

        return PlainJSON(await self.searches.look_up(client, found))

    async def _look_up(self, request: Request, work: Any) -> Any:
        return await self.searches.look_up(client_of(request), work)


def _name(request: Request) -> str:
    return str(request.path_params["name"])


def _number(request: Request, name: str, default: int, most: int = 100) -> int:
    given = request.query_params.get(name, str(default))
    if not given.isdigit() or not 0 <= int(given) <= most:
        raise InvalidOption(f"{name} is {given!r}; it must be a whole number up to {most}.")
    return int(given)


def _page(row: dict[str, Any], span: str) -> str:
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
