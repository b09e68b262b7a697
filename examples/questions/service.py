"""A service over an index: answers stream, each user sees some batches only, and every question has a timeout.

GRAPHRAG_DATA=data uvicorn --factory --app-dir examples/questions service:app
curl -H 'X-User: ann' 'http://127.0.0.1:8000/ask?question=Who+was+Cyrus+Field?'
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from graphrag_assets import GraphRAG, InvalidOption, QueryTimeout
from graphrag_assets.query import Answer, Filter

RIGHTS: Mapping[str, Sequence[str]] = {"ann": ["1-beginnings", "4-great-eastern"], "ben": ["1-beginnings"], "eve": []}
"""The batches that each user may see. Behind a proxy that sets X-User, this would be a table."""
TIMEOUT = 60.0


def application(rag: GraphRAG, rights: Mapping[str, Sequence[str]] = RIGHTS, timeout: float = TIMEOUT) -> Starlette:
    """The service; `rag` is closed with it."""

    def allowed(request: Request) -> Filter:
        return Filter(batches=rights.get(request.headers.get("X-User", ""), ()))

    async def ask(request: Request) -> Response:
        """Lines of JSON: pieces of the answer, and at last its citations, or an error."""
        try:
            stream = rag.aask.stream(request.query_params["question"], filter=allowed(request), timeout=timeout)
        except (KeyError, InvalidOption) as error:
            return JSONResponse({"error": str(error)}, status_code=400)

        async def lines() -> AsyncIterator[str]:
            try:
                async for piece in stream:
                    yield line(piece=piece)
                yield line(citations=citations_of(stream.result))
            except QueryTimeout as late:
                yield line(error=str(late), completed=list(late.completed))
            finally:  # also if the client has left
                await stream.aclose()

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def passages(request: Request) -> Response:
        """The passages that match a question, for a model of the client's own."""
        found = await rag.aretrieve(request.query_params["question"], k=5, filter=allowed(request), timeout=timeout)
        return JSONResponse(found.select("document", "place", "start_char", "end_char", "text").to_dicts())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with rag:
            yield

    return Starlette(routes=[Route("/ask", ask), Route("/passages", passages)], lifespan=lifespan)


def citations_of(answer: Answer) -> list[dict[str, object]]:
    """The citations of an answer, once each."""
    return [
        {"document": cited.document, "start": cited.start_char, "end": cited.end_char, "quote": cited.quote}
        for cited in answer.citations
    ]


def line(**values: object) -> str:
    """One line of JSON."""
    return json.dumps(values, ensure_ascii=False) + "\n"


def app() -> Starlette:
    """The service of the index in GRAPHRAG_DATA, for `uvicorn --factory`."""
    return application(GraphRAG())
