"""What all addresses share: the client of a request, its body, errors as JSON, streams of events."""

import json
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import anyio
from pydantic import BaseModel, ValidationError
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from graphrag_assets.errors import GraphRAGError, InvalidOption, ModelUnavailable, QueryTimeout, StoreError
from graphrag_assets.extras.server.access import Client, Clients, RefusedError, in_words
from graphrag_assets.extras.server.lookups import NotFoundError
from graphrag_assets.runtime.masking import mask

log = logging.getLogger(__name__)

Body = TypeVar("Body", bound=BaseModel)
Handler = Callable[[Request], Awaitable[Response]]
DRAIN_SECONDS = 10
PING_SECONDS = 15
"""Between comments in a stream: proxies close one that is silent for a minute."""


class ForbiddenError(GraphRAGError):
    """A client asks for what it may not see."""


def client_of(request: Request) -> Client:
    """The client whose token the request has. Raises ForbiddenError for a request without one where one is needed."""
    clients: Clients = request.app.state.clients
    client = clients.named(request.user.access_token.client_id if request.user.is_authenticated else None)
    if client is None:
        raise ForbiddenError("This address needs a token.")
    return client


def unfiltered(client: Client, what: str) -> None:
    """Raise ForbiddenError for a client with a filter."""
    if client.filter is not None:
        raise ForbiddenError(f"{what} is of the whole index, and this token may see a part of it.")


async def body_of(request: Request, kind: type[Body]) -> Body:
    """The JSON of a request.

    Raises:
        InvalidOption: it is none, or a field is not allowed.
    """
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        raise InvalidOption(in_words(error)) from None


def status_of(error: Exception) -> int:
    """The HTTP status of an error."""
    statuses: dict[type[Exception], int] = {
        NotFoundError: 404,
        ForbiddenError: 403,
        RefusedError: 429,
        InvalidOption: 400,
        QueryTimeout: 504,
        ModelUnavailable: 502,
        StoreError: 503,
        GraphRAGError: 500,
    }
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), 500)


def error_of(error: Exception) -> dict[str, Any]:
    """An error as OpenAI's clients read it; of one that is not ours, only that it is in the log."""
    if not isinstance(error, GraphRAGError):
        log_failure(error)
        return {"message": "The request failed. The server's log says why.", "type": "internal_error", "code": None}
    kind = "invalid_request_error" if status_of(error) < 500 else "server_error"
    return {"message": mask(str(error)), "type": kind, "code": type(error).__name__}


def log_failure(error: Exception) -> None:
    """Log an unexpected error with its traceback, without secrets."""
    log.error("A request failed: %s", mask("".join(traceback.format_exception(error))))


async def explained(request: Request, error: Exception) -> Response:
    """The answer to a request that failed (Starlette's exception handler)."""
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, RefusedError) else {}
    return JSONResponse({"error": error_of(error)}, status_of(error), headers)


def event_stream(events: AsyncIterator[dict[str, Any]]) -> Response:
    """Server-sent events; the iterator is closed when the client leaves.

    When the server ends, the answer has so many seconds, as others have: see `draining`.
    """
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    ended = anyio.Event()  # without one the response does not wait
    return EventSourceResponse(
        events, ping=PING_SECONDS, headers=headers, shutdown_event=ended, shutdown_grace_period=DRAIN_SECONDS
    )


def as_json(value: Any) -> str:
    """JSON with dates as text."""
    return json.dumps(value, ensure_ascii=False, default=str)


class PlainJSON(JSONResponse):
    """JSON with dates as text."""

    def render(self, content: Any) -> bytes:
        return as_json(content).encode()
