"""`/v1`: the index as models of OpenAI's Chat Completions, for chat programs, clients of that protocol, and the page.

Sources are given in two forms, because clients read different ones: `annotations` of the message, and a list at the end
of the text. The field `graphrag`, which the page reads, has the answer with its citations, entities and errors.
"""

import json
import re
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any, get_args

from pydantic import BaseModel, Field, Json, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.errors import InvalidOption
from graphrag_assets.extras.server.access import in_words
from graphrag_assets.extras.server.footnotes import HEADING, MARK, Footnotes, title_of
from graphrag_assets.extras.server.http import (
    PlainJSON,
    as_json,
    client_of,
    error_of,
    event_stream,
    until_disconnect,
)
from graphrag_assets.extras.server.lookups import NotFoundError
from graphrag_assets.extras.server.searches import Searches
from graphrag_assets.query import AnswerMethodName, AnswerStream

_PREFIX = "graphrag-"
_MODELS = [f"{_PREFIX}{method}" for method in get_args(AnswerMethodName)]
_CHORE = re.compile(
    r"\A\W*task:\s*\n.*^\W*(?:guidelines|output|chat history):", re.IGNORECASE | re.MULTILINE | re.DOTALL
)
"""What Open WebUI asks for beside the conversation: titles, tags, further questions."""
_FIRST_QUESTION = re.compile(r"^USER: ?(.+)", re.MULTILINE)
_JSON_KEY = re.compile(r'\{\s*"(\w+)"\s*:\s*(\[)?')
_TITLE_WORDS = 6

Event = dict[str, Any]


class ChatMessage(BaseModel):
    """A message; its content is a text, or parts of which those of type text count."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of all parts; of an answer, without the sources that this server has listed after it."""
        parts = [self.content] if isinstance(self.content, str) else [part.get("text") for part in self.content or ()]
        text = "\n".join(part for part in parts if isinstance(part, str))
        return text.partition(HEADING)[0] if self.role == "assistant" else text


class SearchMetadata(BaseModel):
    """What limits and tunes the search: objects or, because clients send texts, JSON objects as text.

    `is_question`: the message is searched for, even if it has the form of a chat program's chore.
    """

    filter: Json[dict[str, Any]] | dict[str, Any] = Field(default_factory=dict)
    options: Json[dict[str, Any]] | dict[str, Any] = Field(default_factory=dict)
    is_question: bool = False


class ChatRequest(BaseModel):
    """A request for a chat completion. What is not here, such as `temperature`, has no effect."""

    model: str = "graphrag-ask"
    messages: list[ChatMessage] = Field(min_length=1, max_length=500)
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    metadata: SearchMetadata | None = None
    response_format: dict[str, Any] | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    tool_choice: Any = None

    def check(self) -> None:
        """Raise InvalidOption for what no answer of this server can have."""
        if self.response_format and self.response_format.get("type") != "text":
            raise InvalidOption("response_format is not supported: answers are text with citations.")
        if (
            self.functions
            or (self.tools and self.tool_choice != "none")
            or self.tool_choice not in (None, "none", "auto")
        ):
            raise InvalidOption("tools are not supported: answers are text with citations. Agents use /mcp.")

    def question(self) -> dict[str, Any]:
        """Return the arguments of `Searches.ask`: the newest message of the user, with the turns before it.

        Raises:
            InvalidOption: there is no such model, or no question.
        """
        if self.model not in _MODELS:
            raise InvalidOption(f"There is no model {self.model!r}. The models are: {', '.join(_MODELS)}.")
        places = [place for place, message in enumerate(self.messages) if message.role == "user"]
        if not places or not self.messages[places[-1]].text.strip():
            raise InvalidOption("The messages have no question of the user.")
        turns = [
            {"role": message.role, "content": message.text}
            for message in self.messages[: places[-1]]
            if message.role in ("user", "assistant") and message.text
        ]
        metadata = self.metadata or SearchMetadata()
        return {
            "question": self.messages[places[-1]].text,
            "method": self.model.removeprefix(_PREFIX),
            "history": turns[-200:],
            "filter": metadata.filter,
            "options": metadata.options,
        }


class OpenAI:
    """The handlers of `/v1`."""

    def __init__(self, searches: Searches) -> None:
        self.searches = searches

    @property
    def routes(self) -> list[Route]:
        """Address, method and handler."""
        return [
            Route("/v1/models", self.models),
            Route("/v1/models/{model}", self.model),
            Route("/v1/chat/completions", self.complete, methods=["POST"]),
        ]

    async def models(self, request: Request) -> Response:
        """Return the models, the address of the server, the publication, and its map's if the client may see it."""
        client = client_of(request)
        publication = await self.searches.look_up(client, lambda reader, _: reader.publication)
        map_url = self.searches.access.url(client, "/explorer", {}, days=1) if client.filter is None else None
        address = self.searches.access.public_url
        about = {"client": client.name, "url": address, "publication": publication, "map": map_url}
        return PlainJSON({"object": "list", "data": [_model(name) for name in _MODELS], "graphrag": about})

    async def model(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name not in _MODELS:
            raise NotFoundError(f"There is no model {name!r}. The models are: {', '.join(_MODELS)}.")
        return PlainJSON(_model(name))

    async def complete(self, request: Request) -> Response:
        client = client_of(request)
        try:
            chat = ChatRequest.model_validate_json(await request.body())
        except ValidationError as error:
            raise InvalidOption(in_words(error)) from None
        chat.check()
        reply = _Reply(chat.model)
        is_question = chat.metadata is not None and chat.metadata.is_question
        if not is_question and _CHORE.search(chat.messages[-1].text):
            text = _chore_answer(chat.messages[-1].text)
            if chat.stream:
                return event_stream(_chore_stream(reply, text), self.searches.rag.aclose)
            return PlainJSON(reply.whole(text, [], Usage()))
        stream, footnotes = self.searches.ask(client, **chat.question())
        if chat.stream:
            has_usage = bool((chat.stream_options or {}).get("include_usage"))
            events = self._stream(stream, footnotes, reply, has_usage)
            return event_stream(events, self.searches.rag.aclose)
        answer = await until_disconnect(request, footnotes.whole(stream))
        plain = footnotes.plain(answer)
        content, annotations = plain["text"] + footnotes.as_markdown(), _annotations(footnotes, plain["text"])
        return PlainJSON(reply.whole(content, annotations, answer.total_usage, graphrag=plain))

    async def _stream(
        self, stream: AnswerStream, footnotes: Footnotes, reply: "_Reply", has_usage: bool
    ) -> AsyncIterator[Event]:
        """Chunks of a completion, the first of which is sent before the search."""
        yield reply.chunk({"role": "assistant", "content": ""})
        try:
            async for text in footnotes.pieces(stream):
                yield reply.chunk({"content": text})
            plain = footnotes.plain(stream.result)
            sources = {"content": footnotes.as_markdown(), "annotations": _annotations(footnotes, plain["text"])}
            yield reply.chunk(sources, graphrag=plain)
            yield reply.chunk({}, finish="stop")
            if has_usage:
                yield reply.usage(stream.result.total_usage)
        except Exception as error:
            yield {"data": as_json({"error": error_of(error)})}
        yield {"data": "[DONE]"}


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "graphrag-assets"}


class _Reply:
    """The frame of a completion, the same in all its chunks."""

    def __init__(self, model: str) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> Event:
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": finish}], **more)

    def usage(self, usage: Usage) -> Event:
        return self._chunk([], usage=_tokens(usage))

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> Event:
        return {"data": as_json({**self._head, "object": "chat.completion.chunk", "choices": choices, **more})}

    def whole(self, text: str, annotations: list[dict[str, Any]], usage: Usage, **more: Any) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None, "annotations": annotations}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": _tokens(usage), **more}


def _tokens(usage: Usage) -> dict[str, int]:
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _annotations(footnotes: Footnotes, text: str) -> list[dict[str, Any]]:
    """Return a link to its passage at each footnote in the text."""
    passages, annotations = {number: citation for citation, number in footnotes.passages.items()}, []
    for mark in MARK.finditer(text):
        citation = passages[int(mark[1])]
        if url := footnotes.url(citation):
            cited = {"url": url, "title": title_of(citation), "start_index": mark.start(), "end_index": mark.end()}
            annotations.append({"type": "url_citation", "url_citation": cited})
    return annotations


async def _chore_stream(reply: _Reply, text: str) -> AsyncIterator[Event]:
    yield reply.chunk({"role": "assistant", "content": text})
    yield reply.chunk({}, finish="stop")
    yield {"data": "[DONE]"}


def _chore_answer(prompt: str) -> str:
    """Return the answer to what a chat program asks for beside the conversation, without a search or a model.

    It is a title for JSON with a text, and nothing for JSON with a list.
    """
    question = _FIRST_QUESTION.search(prompt)
    title = " ".join((question[1] if question else "Conversation").split()[:_TITLE_WORDS]).rstrip("?.,;:!")
    key = _JSON_KEY.search(prompt)
    return json.dumps({key[1]: [] if key[2] else title}) if key else title
