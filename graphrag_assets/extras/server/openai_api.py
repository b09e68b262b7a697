"""`/v1`: the index as models of OpenAI's Chat Completions, for chat programs and clients of that protocol.

Sources are given in three forms, because clients read different ones: `annotations` of the message, the source events
of Open WebUI, and a list at the end of the text.
"""

import contextlib
import json
import re
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphrag_assets.errors import InvalidOption
from graphrag_assets.extras.server.access import Client
from graphrag_assets.extras.server.footnotes import HEADING, Footnotes, title_of
from graphrag_assets.extras.server.http import PlainJSON, as_json, body_of, client_of, error_of, event_stream
from graphrag_assets.extras.server.searches import ANSWERING, Ask, Message, Searches, until_disconnect
from graphrag_assets.query import Answer, Citation

_PREFIX = "graphrag-"
_CHORE = re.compile(r"\s*### Task:|.*\btitle (?:for|of) (?:the|this) (?:chat|conversation)", re.IGNORECASE | re.DOTALL)
"""Prompts by which chat programs ask for a title, tags or further questions."""
_FIRST_QUESTION = re.compile(r"(?:USER|User|user): ?(.+)")
_TITLE_WORDS = 6


class ChatMessage(BaseModel):
    """A message; its content is a text, or parts of which those of type text count."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of all parts, without the sources that this server has listed after it."""
        parts = [self.content] if isinstance(self.content, str) else [part.get("text") for part in self.content or ()]
        return "\n".join(part for part in parts if isinstance(part, str)).partition(f"\n\n{HEADING}")[0]


class StreamOptions(BaseModel):
    """Whether the last chunk has the usage."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """A request for a chat completion. What is not here, such as `temperature`, has no effect."""

    model_config = ConfigDict(extra="ignore")

    model: str = "graphrag-ask"
    messages: list[ChatMessage] = Field(min_length=1, max_length=500)
    stream: bool = False
    stream_options: StreamOptions | None = None
    metadata: dict[str, Any] | None = Field(
        None, description="`filter` and `options` of the search: objects, or JSON objects as text"
    )

    def ask(self) -> Ask:
        """The question: the newest message of the user, with the turns before it.

        Raises:
            InvalidOption: there is no such model, or no question.
        """
        method = self.model.removeprefix(_PREFIX)
        method = "ask" if self.model in ("graphrag", "") else method
        if method not in ANSWERING:
            raise InvalidOption(f"There is no model {self.model!r}. The models are: {', '.join(_models())}.")
        places = [place for place, message in enumerate(self.messages) if message.role == "user"]
        if not places or not self.messages[places[-1]].text.strip():
            raise InvalidOption("The messages have no question of the user.")
        turns = [
            Message(role="user" if message.role == "user" else "assistant", content=message.text)
            for message in self.messages[: places[-1]]
            if message.role in ("user", "assistant") and message.text
        ]
        given = {name: _object(name, (self.metadata or {}).get(name)) for name in ("filter", "options")}
        return Ask(question=self.messages[places[-1]].text, method=method, history=turns[-200:], **given)  # type: ignore[arg-type]


def _models() -> list[str]:
    return [f"{_PREFIX}{method}" for method in ANSWERING]


def _object(name: str, given: Any) -> dict[str, Any]:
    """An object of `metadata`, whose values are texts in OpenAI's clients."""
    try:
        found = json.loads(given) if isinstance(given, str) else given or {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidOption(f"metadata.{name} must be an object, or a JSON object as text.")
    return found


class OpenAI:
    """The handlers of `/v1`."""

    def __init__(self, searches: Searches) -> None:
        self.searches = searches

    @property
    def routes(self) -> list[Route]:
        """Address, method and handler."""
        return [
            Route("/v1/models", self.models),
            Route("/v1/chat/completions", self.complete, methods=["POST"]),
        ]

    async def models(self, request: Request) -> Response:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "graphrag-assets"} for name in _models()]
        return PlainJSON({"object": "list", "data": listed})

    async def complete(self, request: Request) -> Response:
        asked, client = await body_of(request, ChatRequest), client_of(request)
        chore = asked.messages[-1].text
        reply = _Reply(asked.model)
        if _CHORE.match(chore):
            text = _done(chore, asked)
            return event_stream(_chore_stream(reply, text)) if asked.stream else PlainJSON(reply.whole(text, [], None))
        ask = asked.ask()
        if asked.stream:
            wants_usage = asked.stream_options is not None and asked.stream_options.include_usage
            return event_stream(self._stream(client, ask, reply, wants_usage))
        answer = await until_disconnect(request.receive, self.searches.answer(client, ask))
        footnotes = self.searches.footnotes(client)
        text = footnotes.text(answer.answer)
        sources = footnotes.as_markdown(answer)
        whole = f"{text}\n\n{sources}" if sources else text
        return PlainJSON(reply.whole(whole, _annotations(footnotes, answer, text), answer))

    async def _stream(
        self, client: Client, ask: Ask, reply: "_Reply", wants_usage: bool
    ) -> AsyncIterator[dict[str, Any]]:
        """Chunks of a completion, the first of which is sent before the search."""
        footnotes, shown = self.searches.footnotes(client), ""
        yield reply.chunk({"role": "assistant", "content": ""}, _status("Searching", False))
        try:
            async with contextlib.aclosing(self.searches.events(client, ask)) as events:
                async for event in events:
                    if event.name == "token" and (text := footnotes.feed(event.value)):
                        shown += text
                        yield reply.chunk({"content": text})
                    elif event.name == "answer":
                        answer: Answer = event.value
                        rest = footnotes.end()
                        shown += rest
                        sources = footnotes.as_markdown(answer)
                        tail = rest + (f"\n\n{sources}" if sources else "")
                        if tail:
                            yield reply.chunk({"content": tail})
                        for source in _source_events(footnotes, answer):
                            yield reply.chunk({}, source)
                        if annotations := _annotations(footnotes, answer, shown):
                            yield reply.chunk({"annotations": annotations})
                        yield reply.chunk({}, _status(f"{answer.method} search", True), finish="stop")
                        if wants_usage:
                            yield reply.usage(answer)
        except Exception as error:
            yield {"data": as_json({"error": error_of(error)})}
        yield {"data": "[DONE]"}


class _Reply:
    """The frame of a completion, the same in all its chunks."""

    def __init__(self, model: str) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def chunk(
        self, delta: dict[str, Any], event: dict[str, Any] | None = None, finish: Literal["stop"] | None = None
    ) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = self._head | {"object": "chat.completion.chunk", "choices": [choice]}
        return {"data": as_json(chunk | ({"event": event} if event else {}))}

    def usage(self, answer: Answer) -> dict[str, Any]:
        return {
            "data": as_json(self._head | {"object": "chat.completion.chunk", "choices": [], "usage": _usage(answer)})
        }

    def whole(self, text: str, annotations: list[dict[str, Any]], answer: Answer | None) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None, "annotations": annotations}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return self._head | {"object": "chat.completion", "choices": [choice], "usage": _usage(answer)}


def _usage(answer: Answer | None) -> dict[str, int]:
    used = answer.total_usage if answer else None
    prompt, completion = (used.prompt_tokens, used.completion_tokens) if used else (0, 0)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _annotations(footnotes: Footnotes, answer: Answer, text: str) -> list[dict[str, Any]]:
    """A link at the first place of each footnote in the text, to the first passage behind it."""
    found = []
    for number, cited in _by_footnote(footnotes, answer).items():
        mark = f"[{number}]"
        if (start := text.find(mark)) >= 0 and (url := _address(footnotes, number, cited)):
            place = {"url": url, "title": title_of(cited[0]), "start_index": start, "end_index": start + len(mark)}
            found.append({"type": "url_citation", "url_citation": place})
    return found


def _source_events(footnotes: Footnotes, answer: Answer) -> list[dict[str, Any]]:
    """One event of Open WebUI for each footnote, in their order.

    It numbers sources by their addresses as they arrive, and takes annotations for sources, too: all of a footnote have
    one address, which no other has.
    """
    events = []
    for number, cited in _by_footnote(footnotes, answer).items():
        url = _address(footnotes, number, cited)
        source = {"name": title_of(cited[0]), "url": url}
        metadata = [{"source": url, "name": title_of(citation)} for citation in cited]
        documents = [citation.quote or "" for citation in cited]
        events.append({"type": "source", "data": {"source": source, "document": documents, "metadata": metadata}})
    return events


def _by_footnote(footnotes: Footnotes, answer: Answer) -> dict[int, list[Citation]]:
    by_number: dict[int, list[Citation]] = {}
    for number, citation in footnotes.cited(answer):
        by_number.setdefault(number, []).append(citation)
    return by_number


def _address(footnotes: Footnotes, number: int, cited: list[Citation]) -> str:
    url = footnotes.url(cited[0])
    return f"{url}#{number}" if url else ""


def _status(description: str, done: bool) -> dict[str, Any]:
    return {"type": "status", "data": {"description": description, "done": done}}


async def _chore_stream(reply: _Reply, text: str) -> AsyncIterator[dict[str, Any]]:
    yield reply.chunk({"role": "assistant", "content": text})
    yield reply.chunk({}, finish="stop")
    yield {"data": "[DONE]"}


def _done(chore: str, asked: ChatRequest) -> str:
    """What a chat program asks for beside the conversation, without a search or a model: a title, or nothing."""
    for empty in ("follow_ups", "tags", "queries"):
        if f'"{empty}"' in chore:
            return json.dumps({empty: []})
    earlier = [message.text for message in asked.messages[:-1] if message.role == "user"]
    stated = _FIRST_QUESTION.search(chore)
    first = earlier[0] if earlier else stated[1] if stated else "Conversation"
    title = " ".join(first.split()[:_TITLE_WORDS]).rstrip("?.,;:!")
    return json.dumps({"title": title}) if '"title"' in chore else title
