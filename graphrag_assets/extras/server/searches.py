"""Questions of clients: their options within what the client may see, their searches, and how these end."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from graphrag_assets.errors import InvalidOption, QueryError
from graphrag_assets.extras.server.access import Client, Clients, Links, RefusedError
from graphrag_assets.extras.server.footnotes import Footnotes
from graphrag_assets.extras.server.metrics import Metrics
from graphrag_assets.query import METHODS, Answer, Citation, Context, GraphRAG
from graphrag_assets.query.callbacks import Callbacks
from graphrag_assets.query.filters import Filter, Scope, scope_of
from graphrag_assets.store.publication_reader import Reader

Result = TypeVar("Result")
ANSWERING = ("ask", *METHODS)
MethodName = Literal["ask", "local", "global", "drift", "basic", "lazy", "planned"]
_OWN_OPTIONS = frozenset({"callbacks", "timeout", "filter", "history", *(f.name for f in fields(Filter))})
_WAIT = 30.0
"""Seconds that a question waits for others to end."""


class Message(BaseModel):
    """An earlier question or answer."""

    role: Literal["user", "assistant"]
    content: str


class Ask(BaseModel):
    """A question, how it is answered, and to what the search is limited."""

    model_config = ConfigDict(extra="forbid")

    question: str
    method: MethodName = "ask"
    history: list[Message] = Field(default_factory=list, max_length=200)
    filter: dict[str, Any] = Field(
        default_factory=dict,
        description="batches, documents, entity_types, relationship_types, metadata, as_of, since: see docs/query.md",
    )
    options: dict[str, Any] = Field(default_factory=dict, description="options of the method: see docs/query.md")


class Retrieve(BaseModel):
    """A question, and how the passages for it are ranked."""

    model_config = ConfigDict(extra="forbid")

    question: str
    k: int = Field(10, ge=1, le=100)
    method: Literal["graph", "text", "words", "vectors"] = "graph"
    filter: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """What a search reports: `context`, `token` (a piece of the answer) or `answer`."""

    name: Literal["context", "token", "answer"]
    value: Any


@dataclass
class Searches:
    """Runs the searches of all clients.

    Args:
        rag: the index.
        seconds: after which a search ends.
        at_once: how many run at the same time; others wait.
    """

    rag: GraphRAG
    clients: Clients
    links: Links
    metrics: Metrics
    seconds: float
    at_once: int
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.at_once)

    def footnotes(self, client: Client) -> Footnotes:
        """Footnotes whose links the client can open."""

        def url(citation: Citation) -> str | None:
            if citation.text_unit_id is None:
                return None
            return self.links.passage(client, citation.text_unit_id, citation.start_char, citation.end_char)

        return Footnotes(url)

    async def answer(self, client: Client, ask: Ask) -> Answer:
        """The answer to a question."""
        async for event in self.events(client, ask):
            if event.name == "answer":
                found: Answer = event.value
        return found

    async def events(self, client: Client, ask: Ask) -> AsyncGenerator[Event, None]:
        """The events of a search, the last of which is its answer. Closing it ends the search.

        Raises:
            InvalidOption: the question or an option is not allowed.
            RefusedError: a limit of the client, or of the server, is reached.
        """
        contexts: list[Context] = []
        options = self._options(client, ask.filter, ask.options)
        options |= {"history": [turn.model_dump() for turn in ask.history], "callbacks": Callbacks(contexts.append)}
        stream = getattr(self.rag, f"a{ask.method}").stream(ask.question, **options)
        async with self._slot(client, ask.method), stream:
            async for piece in stream:
                while contexts:
                    yield Event("context", contexts.pop(0))
                yield Event("token", piece)
            answer: Answer = stream.result
            self.clients.charge(client, answer.total_usage.cost)
            self.metrics.count(answer)
            yield Event("answer", answer)

    async def context(self, client: Client, ask: Ask) -> Context:
        """The context from which a method, any but ask, would answer."""
        if ask.method == "ask":
            raise InvalidOption(f"ask chooses a method; name one for a context: {', '.join(METHODS)}.")
        options = self._options(client, ask.filter, ask.options)
        history = [turn.model_dump() for turn in ask.history]
        async with self._slot(client, "context"):
            return await self.rag.acontext(ask.method, ask.question, history=history, **options)

    async def retrieve(self, client: Client, ask: Retrieve) -> list[dict[str, Any]]:
        """The passages that match a question best, with links."""
        options = self._options(client, ask.filter, {})
        async with self._slot(client, "retrieve"):
            frame = await self.rag.aretrieve(ask.question, ask.k, ask.method, **options)
        return [
            row | {"url": self.links.passage(client, row["text_unit_id"], row["start_char"], row["end_char"])}
            for row in frame.rename({"id": "text_unit_id"}).to_dicts()
        ]

    async def look_up(self, client: Client, work: Callable[[Reader, Scope], Result]) -> Result:
        """What a function of `lookups` finds in the newest publication, within the filter of the client."""

        def found() -> Result:
            reader = self.rag.index.reader()
            return work(reader, _scope(reader, client))

        async with self._slot(client, "lookup", is_question=False):
            return await asyncio.to_thread(found)

    def _options(self, client: Client, filter: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        if own := sorted(_OWN_OPTIONS & set(options)):
            raise InvalidOption(f"{own[0]} is no option here; give filters as `filter` and turns as `history`.")
        try:
            asked = Filter(**filter)
        except QueryError as error:
            raise InvalidOption(str(error)) from None
        _scope(self.rag.index.reader(), client)
        return {**options, "filter": narrowed(client.filter, asked), "timeout": self.seconds}

    @contextlib.asynccontextmanager
    async def _slot(self, client: Client, method: str, is_question: bool = True) -> AsyncIterator[None]:
        self.clients.admit(client, is_question)
        try:
            await asyncio.wait_for(self._slots.acquire(), _WAIT)
        except TimeoutError:
            raise RefusedError(f"{self.at_once} searches are running. Ask again later.", 10) from None
        try:
            with self.metrics.running(method):
                yield
        finally:
            self._slots.release()


def _scope(reader: Reader, client: Client) -> Scope:
    """What a client may see.

    Raises:
        InvalidOption: its filter names what the index does not have; the message does not list what there is.
    """
    try:
        return scope_of(reader, client.filter)
    except InvalidOption:
        raise InvalidOption("The index does not have what the filter of this token names.") from None


def narrowed(own: Filter | None, asked: Filter) -> Filter:
    """The filter of a request within that of its client.

    Raises:
        InvalidOption: it names what the client's filter excludes; the message names nothing else.
    """
    if own is None:
        return asked
    both: dict[str, Any] = {}
    for name in ("batches", "documents", "entity_types", "relationship_types"):
        mine, wanted = getattr(own, name), getattr(asked, name)
        both[name] = _within(name, mine, wanted)
    mine, wanted = dict(own.metadata or ()), dict(asked.metadata or ())
    both["metadata"] = {
        key: _within(key, mine.get(key), wanted.get(key)) for key in dict.fromkeys([*mine, *wanted])
    } or None
    both["as_of"] = min((str(day) for day in (own.as_of, asked.as_of) if day), default=None)  # ISO dates
    both["since"] = max((str(day) for day in (own.since, asked.since) if day), default=None)
    return Filter(**both)


def _within(name: str, mine: Sequence[Any] | None, wanted: Sequence[Any] | None) -> list[Any] | None:
    if wanted is None or mine is None:
        given = wanted if mine is None else mine
        return None if given is None else list(given)
    if outside := [value for value in wanted if value not in mine]:
        raise InvalidOption(f"{name} {outside[0]!r} is not among what this token may see: {', '.join(map(str, mine))}.")
    return list(wanted)


async def until_disconnect(receive: Callable[[], Awaitable[Mapping[str, Any]]], work: Awaitable[Result]) -> Result:
    """The result of `work`, which is canceled when the client leaves."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else await _canceled(working)
    finally:
        leaving.cancel()
        working.cancel()


async def _canceled(work: "asyncio.Future[Result]") -> Result:
    work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work
    raise RefusedError("The client left.", 0)
