"""`/v1`: the index as models of OpenAI's Chat Completions, for chat programs and clients of that protocol.

Sources are given in two forms, because clients read different ones: `annotations` of the message, and a list at the end
of the text.
"""

import json
import re
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any, get_args

from pydantic import BaseModel, Field, Json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphrag_assets.contracts.answering import Usage
from graphrag_assets.errors import InvalidOption
from graphrag_assets.extras.server.access import Client
from graphrag_assets.extras.server.footnotes import HEADING, Footnotes, title_of
from graphrag_assets.extras.server.http import (
    PlainJSON,
    as_json,
    body_of,
    client_of,
    error_of,
    event_stream,
    until_disconnect,
)
from graphrag_assets.extras.server.searches import Ask, Message, MethodName, Searches
from graphrag_assets.query import Answer

_PREFIX = "graphrag-"
_MODELS = [f"{_PREFIX}{method}" for method in get_args(MethodName)]
_CHORE = re.compile(r"\s*### Task:|.*\btitle (?:for|of) (?:the|this) (?:chat|conversation)", re.IGNORECASE | re.DOTALL)
"""Prompts by which chat programs ask for a title, tags or further questions."""
_FIRST_QUESTION = re.compile(r"(?:USER|User|user): ?(.+)")
_TITLE_WORDS = 6

Event = dict[str, Any]


class ChatMessage(BaseModel):
    """A message; its content is a text, or parts of which those of type text count."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of all parts, without the sources that this server has listed after it."""
        parts = [self.content] if isinstance(self.content, str) else [part.get("text") for part in self.content or ()]
        return "\n".join(part for part in parts if isinstance(part, str)).partition(HEADING)[0]


class SearchMetadata(BaseModel):
    """What limits and tunes the search: objects or, because clients send texts, JSON objects as text."""

    filter: Json[dict[str, Any]] | dict[str, Any] = Field(default_factory=dict)
    options: Json[dict[str, Any]] | dict[str, Any] = Field(default_factory=dict)


class ChatRequest(BaseModel):
    """A request for a chat completion. What is not here, such as `temperature`, has no effect."""

    model: str = "graphrag-ask"
    messages: list[ChatMessage] = Field(min_length=1, max_length=500)
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    metadata: SearchMetadata | None = None

    def ask(self) -> Ask:
        """The question: the newest message of the user, with the turns before it.

        Raises:
            InvalidOption: there is no such model, or no question.
        """
        if self.model not in _MODELS:
            raise InvalidOption(f"There is no model {self.model!r}. The models are: {', '.join(_MODELS)}.")
        places = [place for place, message in enumerate(self.messages) if message.role == "user"]
        if not places or not self.messages[places[-1]].text.strip():
            raise InvalidOption("The messages have no question of the user.")
        turns = [
            Message(role=message.role, content=message.text)  # type: ignore[arg-type]
            for message in self.messages[: places[-1]]
            if message.role in ("user", "assistant") and message.text
        ]
        metadata = self.metadata or SearchMetadata()
        return Ask(
            question=self.messages[places[-1]].text,
            method=self.model.removeprefix(_PREFIX),  # type: ignore[arg-type]
            history=turns[-200:],
            filter=metadata.filter,
            options=metadata.options,
        )


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
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "graphrag-assets"} for name in _MODELS]
        return PlainJSON({"object": "list", "data": listed})

    async def complete(self, request: Request) -> Response:
        asked, client = await body_of(request, ChatRequest), client_of(request)
        reply = _Reply(asked.model)
        if _CHORE.match(asked.messages[-1].text):
            text = _done(asked.messages[-1].text, asked)
            if asked.stream:
                return event_stream(_chore_stream(reply, text), self.searches.rag.aclose)
            return PlainJSON(reply.whole(text, [], Usage()))
        ask = asked.ask()
        if asked.stream:
            has_usage = bool((asked.stream_options or {}).get("include_usage"))
            return event_stream(self._stream(client, ask, reply, has_usage), self.searches.rag.aclose)
        answer = await until_disconnect(request, self.searches.answer(client, ask))
        footnotes = self.searches.footnotes(client)
        text = footnotes.text(answer.answer)
        annotations = _annotations(footnotes, answer, text)
        return PlainJSON(reply.whole(text + footnotes.as_markdown(answer), annotations, answer.total_usage))

    async def _stream(self, client: Client, ask: Ask, reply: "_Reply", has_usage: bool) -> AsyncIterator[Event]:
        """Chunks of a completion, the first of which is sent before the search."""
        footnotes, shown = self.searches.footnotes(client), ""
        yield reply.chunk({"role": "assistant", "content": ""})
        try:
            async with self.searches.stream(client, ask) as stream:
                async for piece in stream:
                    if text := footnotes.feed(piece):
                        shown += text
                        yield reply.chunk({"content": text})
            rest = footnotes.end()
            yield reply.chunk({"content": rest + footnotes.as_markdown(stream.result)})
            yield reply.chunk({"annotations": _annotations(footnotes, stream.result, shown + rest)})
            yield reply.chunk({}, finish="stop")
            if has_usage:
                yield reply.usage(stream.result.total_usage)
        except Exception as error:
            yield {"data": as_json({"error": error_of(error)})}
        yield {"data": "[DONE]"}


class _Reply:
    """The frame of a completion, the same in all its chunks."""

    def __init__(self, model: str) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> Event:
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": finish}])

    def usage(self, usage: Usage) -> Event:
        return self._chunk([], usage=_tokens(usage))

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> Event:
        return {"data": as_json({**self._head, "object": "chat.completion.chunk", "choices": choices, **more})}

    def whole(self, text: str, annotations: list[dict[str, Any]], usage: Usage) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None, "annotations": annotations}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": _tokens(usage)}


def _tokens(usage: Usage) -> dict[str, int]:
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _annotations(footnotes: Footnotes, answer: Answer, text: str) -> list[dict[str, Any]]:
    """A link at the first place of each footnote in the text, to the first passage behind it.

    Open WebUI numbers sources by their addresses, so no two footnotes have the same.
    """
    found = []
    for number, (citation, *_) in footnotes.cited(answer).items():
        mark, url = f"[{number}]", footnotes.url(citation)
        if url and (start := text.find(mark)) >= 0:
            place = {"start_index": start, "end_index": start + len(mark)}
            cited = {"url": f"{url}#{number}", "title": title_of(citation), **place}
            found.append({"type": "url_citation", "url_citation": cited})
    return found


async def _chore_stream(reply: _Reply, text: str) -> AsyncIterator[Event]:
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
