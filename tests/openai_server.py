"""A real local HTTP server that speaks the OpenAI protocol, with scripted content and faults.

Chat completions (plain and streamed, with `response_format`), embeddings, and the list of models.
Written on asyncio streams, because closed connections and broken bodies are part of its job. In a test it is the fixture `openai_server`; in a process of its own `python -m tests.openai_server --port 8123`.
"""

import argparse
import asyncio
import hashlib
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl

from tests.openai_content import CORRECTION, DIMENSIONS, content_for, embedding_of, task_of

Body = dict[str, Any]

# Faults of the answer as a whole, then faults of a well-formed answer's content.
HTTP_FAULTS = {"400": 400, "401": 401, "403": 403, "404": 404, "408": 408, "429": 429, "500": 500, "503": 503}
FAULTS = (
    *HTTP_FAULTS,
    "429-retry-after",  # 429 with Retry-After in seconds (`retry_after`)
    "429-retry-date",  # 429 with Retry-After as an HTTP date
    "slow",  # answers after `slow_seconds`
    "closed",  # the connection is closed without a word
    "cut",  # the connection is closed in the middle of the body
    "malformed-body",  # status 200 and a body that is not JSON
    "malformed-content",  # the message is broken JSON
    "truncated",  # half of the message, finish_reason "length"
    "empty",  # a message without content
    "refusal",  # message.refusal
    "filtered",  # finish_reason "content_filter"
    "wrong-schema",  # JSON of another shape
    "fewer-vectors",  # embeddings: one is missing
    "wrong-dimensions",  # embeddings: one is shorter than the others
)
_OF_EMBEDDINGS = {"fewer-vectors", "wrong-dimensions"}
_OF_MESSAGES = {"malformed-content", "truncated", "empty", "refusal", "filtered", "wrong-schema"}


@dataclass(frozen=True)
class FaultPlan:
    """Shares of requests that fail, drawn per request from the seed, its body and how often it was sent.

    The order in which requests arrive does not matter: the same request meets the same faults in every run. A
    fault of messages passes by embeddings and the other way round. An answer that was not valid is valid when it is
    requested again, so that every fault costs one request.
    """

    shares: dict[str, float] = field(default_factory=dict)
    seed: int = 0

    def draw(self, body: bytes, attempt: int) -> str | None:
        """The fault that the `attempt`-th request with this body meets."""
        digest = hashlib.blake2b(b"%d %d " % (self.seed, attempt) + body, digest_size=8).digest()
        rest = int.from_bytes(digest, "big") / 2**64
        for fault, share in self.shares.items():
            if rest < share:
                return None if fault in _OF_MESSAGES and CORRECTION.encode() in body else fault
            rest -= share
        return None


@dataclass
class Request:
    """One request as received, its fault, and when it was received and answered."""

    path: str
    body: Body
    headers: dict[str, str]
    task: str
    fault: str | None
    at: float
    answered: float = float("inf")

    @property
    def route(self) -> str:
        """The path without its query, which Azure has."""
        return self.path.partition("?")[0]


class _ReplyError(Exception):
    """An answer other than the regular one."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None, **error: Any):
        self.status, self.headers = status, headers or {}
        self.body = {"error": {"message": message, "type": "test", "param": None, "code": None} | error}


@dataclass
class OpenAIServer:
    """The server and what it has seen. All attributes may be changed while it runs.

    `content` makes the message of a chat request; `next_faults` are given to the next requests in turn (None:
    no fault), then `faults` is drawn from. `rejected_formats` are the types of response_format answered with 400.
    `replace` may give another reply (status, headers, body) to a request, given its JSON or form.
    `cached` is the share of each prompt that is said to come from the prompt cache.
    `context`: of longer prompts only so many tokens are counted, as by a server that cuts them.
    With `remember` a request that comes again, byte for byte, has the answer it had, at next to no cost.
    """

    content: Callable[[Body], str] = content_for
    replace: Callable[[Body], tuple[int, dict[str, str], bytes] | None] | None = None
    faults: FaultPlan = field(default_factory=FaultPlan)
    next_faults: deque[str | None] = field(default_factory=deque)
    rejected_formats: set[str] = field(default_factory=set)
    models: set[str] | None = None
    api_key: str | None = None
    latency: float = 0.0
    slow_seconds: float = 5.0
    seconds_per_text: float = 0.0
    retry_after: float = 1.0
    cached: float = 0.0
    context: int | None = None
    dimensions: int = DIMENSIONS
    record: bool = True
    remember: bool = False
    requests: list[Request] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    attempts: Counter[bytes] = field(default_factory=Counter)
    remembered: dict[bytes, tuple[str, bytes]] = field(default_factory=dict)
    in_flight: int = 0
    most_in_flight: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    def fail_next(self, *faults: str | None) -> None:
        """The next requests meet these faults, in this order."""
        unknown = {fault for fault in faults if fault is not None} - set(FAULTS)
        assert not unknown, f"unknown faults {unknown}"
        self.next_faults.extend(faults)

    @property
    def chats(self) -> list[Request]:
        """The chat requests received."""
        return [request for request in self.requests if request.route.endswith("/chat/completions")]

    @property
    def embeddings(self) -> list[Request]:
        """The embedding requests received."""
        return [request for request in self.requests if request.route.endswith("/embeddings")]

    def stats(self) -> Body:
        """Counts by path, task and fault, as `GET /stats` answers them."""
        return {"counts": dict(self.counts), "in_flight": self.in_flight, "most_in_flight": self.most_in_flight}

    async def serve(self) -> asyncio.Server:
        """Listen on `port` (0: a free one, which is then set)."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, limit=2**24)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (head := await _read_head(reader)) is not None:
                method, path, headers = head
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                try:
                    keep = await self._respond(writer, method, path, headers, raw)
                finally:
                    self.in_flight -= 1
                if not keep:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has disconnected, or the server stops
        finally:
            writer.close()

    async def _respond(
        self, writer: asyncio.StreamWriter, method: str, path: str, headers: dict[str, str], raw: bytes
    ) -> bool:
        """Answer one request; False when the connection is to be closed."""
        if path.endswith("/stats"):
            return await _send(writer, 200, self.stats())
        if path.endswith("/models"):
            data = [{"id": name, "object": "model"} for name in sorted(self.models or {"test-model"})]
            return await _send(writer, 200, {"object": "list", "data": data})
        if method != "POST":  # a client that follows a redirect
            return await _send(writer, 405, {"error": {"message": "Only POST is answered."}})
        key = hashlib.blake2b(raw, digest_size=16).digest()
        if self.remember and (known := self.remembered.get(key)):
            self.counts.update(["requests", f"path {path}", f"task {known[0]}"])
            await asyncio.sleep(self.latency)
            return await _send(writer, 200, known[1])
        request = self._note(path, headers, raw, key)
        try:
            return await self._answer(writer, request, key)
        finally:
            request.answered = time.monotonic()

    async def _answer(self, writer: asyncio.StreamWriter, request: Request, key: bytes) -> bool:
        fault, body = request.fault, request.body
        if self.latency:
            await asyncio.sleep(self.latency)
        if self.replace and (reply := self.replace(body)):
            status, headers, payload = reply
            return await _send(writer, status, payload, headers)
        if fault == "slow":
            await asyncio.sleep(self.slow_seconds)
        if self.seconds_per_text and "input" in body:
            await asyncio.sleep(self.seconds_per_text * len(body["input"]))
        if fault == "closed":
            return False
        if fault == "malformed-body":
            return await _send(writer, 200, b"<html>502 Bad Gateway</html>")
        try:
            self._refuse(fault, body, request.headers)
            if request.route.endswith("/embeddings"):
                return await _send(writer, 200, self._embeddings(body, fault), cut=fault == "cut")
            message, finish = self._message(body, fault)
        except _ReplyError as reply:
            return await _send(writer, reply.status, reply.body, reply.headers)
        if body.get("stream"):
            events = _chunks(body, message, finish, self.cached)
            return await _send_events(writer, events, cut=fault == "cut")
        answer = json.dumps(_completion(body, message, finish, self.cached, self.context)).encode()
        if self.remember and fault is None:
            self.remembered[key] = request.task, answer
        return await _send(writer, 200, answer, cut=fault == "cut")

    def _note(self, path: str, headers: dict[str, str], raw: bytes, key: bytes) -> Request:
        """Count the request, and choose its fault."""
        self.attempts[key] += 1
        body = json.loads(raw) if raw.lstrip().startswith(b"{") else dict(parse_qsl(raw.decode()))  # of a token
        task = task_of(body) if "messages" in body else "embedding"
        fault = self.next_faults.popleft() if self.next_faults else self.faults.draw(raw, self.attempts[key])
        if fault in (_OF_MESSAGES if task == "embedding" else _OF_EMBEDDINGS):
            fault = None
        self.counts.update(["requests", f"path {path}", f"task {task}", *([f"fault {fault}"] if fault else [])])
        request = Request(path, body, headers, task, fault, time.monotonic())
        if self.record:
            self.requests.append(request)
        return request

    def _refuse(self, fault: str | None, body: Body, headers: dict[str, str]) -> None:
        """Raise the error answer that the fault, the key, the model or the response format asks for."""
        if self.api_key and headers.get("authorization") != f"Bearer {self.api_key}":
            key = headers.get("authorization", "").removeprefix("Bearer ")
            raise _ReplyError(401, f"Incorrect API key provided: {key}.", code="invalid_api_key")
        if self.models is not None and body["model"] not in self.models:
            raise _ReplyError(404, f"The model `{body['model']}` does not exist.", code="model_not_found")
        if fault == "429-retry-after":
            raise _ReplyError(429, "Rate limit reached.", {"Retry-After": f"{self.retry_after:g}"})
        if fault == "429-retry-date":
            raise _ReplyError(
                429, "Rate limit reached.", {"Retry-After": formatdate(time.time() + self.retry_after, usegmt=True)}
            )
        if fault in HTTP_FAULTS:
            raise _ReplyError(HTTP_FAULTS[fault], f"Scripted answer {fault}.")
        kind = (body.get("response_format") or {}).get("type")
        if kind in self.rejected_formats:
            raise _ReplyError(
                400, f"Invalid parameter: 'response_format' of type '{kind}' is not supported.", param="response_format"
            )

    def _message(self, body: Body, fault: str | None) -> tuple[Body, str]:
        """The assistant's message and its finish reason."""
        if fault == "empty":
            return {"role": "assistant", "content": ""}, "stop"
        if fault == "refusal":
            return {"role": "assistant", "content": None, "refusal": "I cannot help with that."}, "stop"
        if fault == "filtered":
            return {"role": "assistant", "content": ""}, "content_filter"
        content = self.content(body)
        if fault == "malformed-content":
            content = "Sure, here it is: " + content.replace(":", " ", 3).replace('"', "", 5)[:-2] + "}}]"
        if fault == "wrong-schema":
            content = json.dumps({"unexpected": [1, 2, 3]})
        if fault == "truncated":
            return {"role": "assistant", "content": content[: len(content) // 2]}, "length"
        limit = body.get("max_tokens") or body.get("max_completion_tokens")
        if limit and _tokens(content) > limit:
            return {"role": "assistant", "content": content[: 4 * limit]}, "length"
        return {"role": "assistant", "content": content}, "stop"

    def _embeddings(self, body: Body, fault: str | None) -> Body:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [embedding_of(text, body.get("dimensions") or self.dimensions) for text in texts]
        if fault == "fewer-vectors":
            vectors.pop()
        if fault == "wrong-dimensions":
            vectors[-1] = vectors[-1][:-1]
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
        tokens = sum(_tokens(str(text)) for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": body["model"], "data": data, "usage": usage}


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


def _usage(body: Body, message: Body, cached: float, context: int | None = None) -> Body:
    prompt = sum(_tokens(str(part["content"])) for part in body["messages"])
    prompt = min(prompt, context or prompt)
    completion = _tokens(message.get("content") or "")
    usage: Body = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return usage | {"prompt_tokens_details": {"cached_tokens": int(cached * prompt)}} if cached else usage


def _completion(body: Body, message: Body, finish: str, cached: float, context: int | None = None) -> Body:
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return _envelope(body, "chat.completion") | {"choices": [choice], "usage": _usage(body, message, cached, context)}


def _envelope(body: Body, kind: str) -> Body:
    return {"id": "chatcmpl-test", "object": kind, "created": 1_700_000_000, "model": body["model"]}


def _chunks(body: Body, message: Body, finish: str, cached: float) -> Iterator[Body]:
    """The events of a streamed answer: pieces of ten characters, the end, the usage."""
    head = _envelope(body, "chat.completion.chunk")
    content = message.get("content") or ""
    pieces = [{"role": "assistant", "content": ""}] + [
        {"content": content[i : i + 10]} for i in range(0, len(content), 10)
    ]
    for delta in pieces:
        yield head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield head | {"choices": [], "usage": _usage(body, message, cached)}


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]] | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    return (
        method,
        path,
        {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)},
    )


async def _send(
    writer: asyncio.StreamWriter,
    status: int,
    body: Body | bytes,
    headers: dict[str, str] | None = None,
    cut: bool = False,
) -> bool:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"Content-Type": "application/json", "Content-Length": str(len(payload)), **(headers or {})}
    head = f"HTTP/1.1 {status} Answer\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
    writer.write(head.encode() + (payload[: len(payload) // 2] if cut else payload))
    await writer.drain()
    return not cut


async def _send_events(writer: asyncio.StreamWriter, events: Iterable[Body], cut: bool = False) -> bool:
    """Server-sent events in chunked encoding; with `cut` the connection breaks in the middle of one."""
    head = "HTTP/1.1 200 Answer\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head.encode())
    lines = [json.dumps(event) for event in events] + ["[DONE]"]
    for line in lines[: len(lines) // 2] if cut else lines:
        data = f"data: {line}\n\n".encode()
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await writer.drain()
    writer.write(b"ff\r\ndata: {" if cut else b"0\r\n\r\n")
    await writer.drain()
    return not cut


async def _close(listening: asyncio.Server) -> None:
    """Stop listening and end the connections that clients keep open."""
    listening.close()
    connections = asyncio.all_tasks() - {asyncio.current_task()}
    for connection in connections:
        connection.cancel()
    await asyncio.gather(*connections, return_exceptions=True)


@contextmanager
def running(**options: Any) -> Iterator[OpenAIServer]:
    """A server in a thread for the duration of the block."""
    server = OpenAIServer(**options)
    loop = asyncio.new_event_loop()
    listening = loop.run_until_complete(server.serve())
    thread = threading.Thread(target=loop.run_forever, name="openai-server", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_close(listening), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


async def _main(options: argparse.Namespace) -> None:
    server = OpenAIServer(latency=options.latency, port=options.port, record=False, remember=options.remember)
    listening = await server.serve()
    print(server.url, flush=True)
    async with listening:
        await listening.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.openai_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: a free one; the base URL is printed")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--remember", action="store_true", help="answer repeated requests from memory")
    asyncio.run(_main(parser.parse_args()))
