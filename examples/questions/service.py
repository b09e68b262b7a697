"""A service over an index: answers stream, each user sees some batches only, and every question has a timeout.

SIGTERM gives the answers in progress three seconds, then ends their searches.

GRAPHRAG_DATA=data uvicorn --factory --app-dir examples/questions service:app
curl -H 'X-User: ann' 'http://127.0.0.1:8000/ask?question=Who+was+Cyrus+Field?'
"""

import asyncio
import json
import signal
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import FrameType

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from graphrag_assets import GraphRAG, GraphRAGError, InvalidOption
from graphrag_assets.query import Answer, Filter

RIGHTS: Mapping[str, Sequence[str]] = {"ann": ["1-beginnings", "4-great-eastern"], "ben": ["1-beginnings"], "eve": []}
"""The batches that each user may see. Behind a proxy that sets X-User, this would be a table."""
TIMEOUT, GRACE = 60.0, 3.0
"""Seconds that a question may take, and those that answers in progress have after SIGTERM."""


def application(
    rag: GraphRAG, rights: Mapping[str, Sequence[str]] = RIGHTS, timeout: float = TIMEOUT, grace: float = GRACE
) -> Starlette:
    """The service; `rag` is closed with it."""

    def allowed(request: Request) -> Filter:
        """What the user may see; a batch that is gone is ignored."""
        return Filter(batches=rights.get(request.headers.get("X-User", ""), ()))

    async def ask(request: Request) -> Response:
        """Lines of JSON: pieces of the answer, and at last its citations, or an error."""
        question = request.query_params.get("question", "")
        stream = rag.astream("ask", question, rights=allowed(request), timeout=timeout)

        async def lines() -> AsyncIterator[str]:
            try:
                async for piece in stream:
                    yield line(piece=piece)
                yield line(citations=citations_of(stream.result))
            except GraphRAGError as error:
                yield line(error=str(error))
            finally:  # also if the client has left
                await stream.aclose()

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def passages(request: Request) -> Response:
        """The passages that match a question, for a model of the client's own."""
        question = request.query_params.get("question", "")
        found = await rag.aretrieve(question, k=5, rights=allowed(request), timeout=timeout)
        return JSONResponse(found.select("document", "place", "start_char", "end_char", "text").to_dicts())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with rag:
            on_sigterm(lambda: asyncio.create_task(rag.aclose()), grace)
            yield

    return Starlette(
        routes=[Route("/ask", ask), Route("/passages", passages)],
        exception_handlers={InvalidOption: refused, GraphRAGError: failed},
        lifespan=lifespan,
    )


async def refused(_: Request, error: Exception) -> Response:
    """What is wrong with the question."""
    return JSONResponse({"error": str(error)}, status_code=400)


async def failed(_: Request, error: Exception) -> Response:
    """Why there is no answer."""
    return JSONResponse({"error": str(error)}, status_code=503)


def on_sigterm(work: Callable[[], object], seconds: float) -> None:
    """Call `work` in this loop so many seconds after SIGTERM, which the server handles as before."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(loop.call_later, seconds, work)
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGTERM, handle)


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
