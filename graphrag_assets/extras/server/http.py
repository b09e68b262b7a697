"""What all addresses share: the client of a request, errors as JSON, streams of events."""

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import anyio
from sse_starlette import EventSourceResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from graphrag_assets.errors import GraphRAGError, InvalidOption, ModelUnavailable, QueryError, QueryTimeout, StoreError
from graphrag_assets.extras.server.access import Access, Client
from graphrag_assets.extras.server.lookups import NotFoundError
from graphrag_assets.runtime.outgoing import mask

log = logging.getLogger(__name__)

Result = TypeVar("Result")
GRACE_SECONDS = 3.0
"""For which answers in progress may go on when the server is told to end."""
PING_SECONDS = 15
"""Between comments in a stream: proxies close one that is silent for a minute."""


class ForbiddenError(GraphRAGError):
    """A client asks for what it may not see."""


_STATUSES: dict[type[GraphRAGError], int] = {
    NotFoundError: 404,
    ForbiddenError: 403,
    InvalidOption: 400,
    QueryTimeout: 504,
    ModelUnavailable: 502,
    StoreError: 503,
}


def client_of(request: Request) -> Client:
    """Return the client whose token the request has. Raises ForbiddenError for a request without one where one is
    needed.
    """
    access: Access = request.app.state.access
    client = access.named(request.user.access_token.client_id if request.user.is_authenticated else None)
    if client is None:
        raise ForbiddenError("This address needs a token.")
    return client


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, HTTPException):
        return error.status_code
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)


def error_of(error: Exception) -> dict[str, Any]:
    """Return an error as OpenAI's clients read it; of one that is not ours, only that it is in the log."""
    if not isinstance(error, GraphRAGError | HTTPException):
        log.error("A request failed: %s", mask("".join(traceback.format_exception(error))))
        return {"message": "The request failed. The server's log says why.", "type": "internal_error", "code": None}
    kind = "invalid_request_error" if status_of(error) < 500 else "server_error"
    return {"message": mask(str(error)), "type": kind, "code": type(error).__name__}


async def explained(request: Request, error: Exception) -> Response:
    """Return the answer to a request that failed (Starlette's exception handler)."""
    return JSONResponse({"error": error_of(error)}, status_of(error))


def raw_path(request: Request) -> str:
    """Return the path of a request as it was sent."""
    return bytes(request.scope["raw_path"]).decode("latin-1")


def event_stream(events: AsyncIterator[dict[str, Any]], end: Callable[[], Awaitable[None]]) -> Response:
    """Server-sent events; the iterator is closed when the client leaves.

    `end` is called some seconds after the server is told to end: it ends the searches, so that `events` can say so.
    """
    ending = anyio.Event()

    async def end_later() -> None:
        await ending.wait()
        await anyio.sleep(GRACE_SECONDS)
        await end()

    return EventSourceResponse(
        events,
        ping=PING_SECONDS,
        data_sender_callable=end_later,
        shutdown_event=ending,
        shutdown_grace_period=2 * GRACE_SECONDS,
    )


async def until_disconnect(request: Request, work: Awaitable[Result]) -> Result:
    """Return the result of `work`, which is canceled when the client leaves."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise QueryError("The client left.")
        return working.result()
    finally:
        leaving.cancel()
        working.cancel()


def as_json(value: Any) -> str:
    """JSON with dates as text."""
    return json.dumps(value, ensure_ascii=False, default=str)


class PlainJSON(JSONResponse):
    """JSON with dates as text."""

    def render(self, content: Any) -> bytes:
        return as_json(content).encode()
