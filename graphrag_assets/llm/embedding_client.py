"""Embeddings: unit vectors of texts, from the ledger or by the provider, in batches."""

import asyncio
import base64
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from graphrag_assets.llm import provider
from graphrag_assets.llm.ledger import Entry, Hit, key_of
from graphrag_assets.llm.model_client import ModelClient
from graphrag_assets.llm.model_errors import BadReplyError, ModelError, RequestRejected, RetriesExhausted
from graphrag_assets.llm.model_options import EmbeddingOptions
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.retry import attempts
from graphrag_assets.llm.single_flight import Trace
from graphrag_assets.progress import Progress
from graphrag_assets.text import encode, tokenizer
from graphrag_assets.usage import Usage

_no_base64: set[tuple[str, str | None]] = set()  # models whose servers have rejected it, learned once per process
_in_time: dict[tuple[str, str | None], int] = {}  # texts per request that a slow server answers in time, likewise


class _TooManyTexts(ModelError):  # noqa: N818
    """So many texts are not answered in time: they are sent in halves."""


@dataclass(frozen=True)
class _Piece:
    """A part of a text that fits into a request; most texts are one piece."""

    key: str
    text: str
    encoding: str

    @cached_property
    def size(self) -> int:
        """Bytes in UTF-8. No tokenizer makes more tokens of a text, so most limits are kept without counting tokens."""
        return len(self.text.encode())

    @cached_property
    def tokens(self) -> int:
        return len(encode(self.text, self.encoding))


class EmbeddingModel(ModelClient[EmbeddingOptions]):
    """An embedding model; see `ModelClient`. Usage is counted under the task given to `embed`."""

    dimensions: int | None = None  # of the model's replies, known with the first one

    async def embed(
        self, texts: Sequence[str], *, task: str = "embed", batch: str | None = None, run_id: str | None = None
    ) -> np.ndarray:
        """Unit vectors, float32 (n, dimensions), in the order of the texts.

        Equal texts are requested once, and each vector is stored before it is used. A text longer than the
        model accepts is split at token boundaries; its vector is the mean of its pieces' by their tokens.

        Texts that are not answered within the timeout are sent in halves; later requests keep to the number that was.

        Stored vectors of another size than the model's replies, of a model that had this name before, are replaced.

        Raises:
            RetriesExhausted: failed too often, or always returned vectors of a wrong number or size.
            RequestRejected, BudgetExceeded, CircuitOpen, LedgerError: there are no vectors.
        """
        split = [self._split(text) for text in texts]
        pieces = {piece.key: piece for parts in split for piece in parts}
        vectors, _ = await self._stored(list(pieces))
        if vectors:
            self.usage.add(task, Usage(ledger_hits=len(vectors)))
        vendor, name = provider.provider_of(self.options.model)
        entry = Entry("", "embedding", task, vendor, name, self.options.parameters, batch=batch, run_id=run_id)
        while missing := [piece for key, piece in pieces.items() if key not in vectors]:
            vectors |= await self._request_all(missing, entry)
            vectors = self._fitting(vectors)
        if len({len(vector) for vector in vectors.values()}) > 1:
            await self.check(task, batch, run_id)  # which of them has the size of the present model
            return await self.embed(texts, task=task, batch=batch, run_id=run_id)
        if not texts:
            return np.zeros((0, self.dimensions or 0), np.float32)
        return np.stack([_joined(parts, vectors) for parts in split])

    async def check(self, task: str, batch: str | None = None, run_id: str | None = None) -> int:
        """Request the vector of one word, whatever the ledger has; returns its dimensions. Raises as `embed` does."""
        vendor, name = provider.provider_of(self.options.model)
        piece = _Piece(uuid.uuid4().hex, "ready", self.options.encoding)
        entry = Entry("", "embedding", task, vendor, name, self.options.parameters, batch=batch, run_id=run_id)
        return len((await self._answer([piece], entry, Trace()))[piece.key])

    async def unpaid(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each request that `embed` would send for the texts; nothing is sent."""
        pieces = {piece.key: piece for text in texts for piece in self._split(text)}
        stored = await self.ledger.get_many(list(pieces))
        missing = [piece for key, piece in pieces.items() if key not in stored]
        return [_tokens(group) for group in self._batches(missing)]

    async def stored_keys(self, texts: Sequence[str]) -> set[str]:
        """The ledger's keys of the stored vectors that the texts' vectors are made of."""
        return set(await self.ledger.get_many([piece.key for text in texts for piece in self._split(text)]))

    def key(self, text: str) -> str:
        """The ledger's key of a text's vector."""
        vendor, name = provider.provider_of(self.options.model)
        return key_of("embedding", vendor, name, json.loads(self.options.parameters), text)

    async def _stored(self, keys: Sequence[str]) -> tuple[dict[str, np.ndarray], bool]:
        """The stored vectors by key, without those of another size than the model's; whether there are such."""
        stored = _vectors(await self.ledger.get_many(keys))
        fitting = self._fitting(stored)
        return fitting, len(fitting) < len(stored)

    def _fitting(self, vectors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {key: vector for key, vector in vectors.items() if self.dimensions in (None, len(vector))}

    async def _request_all(self, pieces: Sequence[_Piece], entry: Entry) -> dict[str, np.ndarray]:
        """Request the pieces in concurrent batches; the first error stops those that have not been sent."""
        progress = Progress("texts embedded", len(pieces), lambda: self.usage.total)

        async def request(group: list[_Piece]) -> dict[str, np.ndarray]:
            key = key_of("embedding request", [piece.key for piece in group])
            call = partial(self._claimed, key, group, entry)
            vectors, _ = await self.ledger.single_flight.share(key, call)
            progress.advance(len(group))
            return vectors

        requests = [asyncio.ensure_future(request(group)) for group in self._batches(pieces)]
        try:
            answers = await asyncio.gather(*requests)
        finally:
            for one in requests:
                one.cancel()
        return {key: vector for answer in answers for key, vector in answer.items()}

    async def _claimed(self, key: str, group: list[_Piece], entry: Entry, trace: Trace) -> dict[str, np.ndarray]:
        """See `_answer`, while no other process requests the same."""
        async with self.ledger.claim(key, self.limits.options.deadline_seconds):
            return await self._answer(group, entry, trace)

    async def _answer(self, group: list[_Piece], entry: Entry, trace: Trace) -> dict[str, np.ndarray]:
        """Unit vectors of the pieces by key, stored; in halves, and those in halves, while the server is too slow."""
        vectors: dict[str, np.ndarray] = {}
        waiting, sent, began = [group], 0, time.monotonic()
        async with self._counting_failure(entry.task, trace):
            prices = await self.prices()
            while waiting:
                part = waiting.pop(0)
                try:
                    found, n_sent = await self._request(part, entry, prices, trace)
                except _TooManyTexts as error:
                    if time.monotonic() - began > self.limits.options.deadline_seconds:
                        raise RetriesExhausted(str(error)) from None
                    half = len(part) // 2
                    waiting[:0] = [part[:half], part[half:]]
                    continue
                vectors, sent, began = vectors | found, sent + n_sent, time.monotonic()
        self.limits.breaker.succeeded()
        self.usage.add(entry.task, trace.usage + Usage(ledger_hits=len(group) - sent))
        return vectors

    async def _request(
        self, group: list[_Piece], entry: Entry, prices: Prices, trace: Trace
    ) -> tuple[dict[str, np.ndarray], int]:
        """See `_attempt`, with retries; as base64 or, where that is rejected, as numbers."""
        name = f"{entry.task}, {len(group)} texts" + (f" of batch {entry.batch}" if entry.batch else "")
        expected = _tokens(group) if self.limits.counts_tokens else 0
        while True:
            encoding = "float"
            if self.options.base64 and provider.speaks_openai(self.options.model) and self._place not in _no_base64:
                encoding = "base64"
            try:
                async with self._slot(trace):
                    async for attempt in attempts(self.options, self.limits, trace, name, expected):
                        with attempt:
                            vectors, n_sent = await self._attempt(group, name, encoding, entry, prices, trace)
                return vectors, n_sent
            except RequestRejected as error:
                if encoding == "float" or not any(word in str(error) for word in ("encoding", "base64")):
                    raise
                _no_base64.add(self._place)

    async def _attempt(
        self, group: list[_Piece], name: str, encoding: str, entry: Entry, prices: Prices, trace: Trace
    ) -> tuple[dict[str, np.ndarray], int]:
        """Unit vectors of the pieces by key, and how many were requested: those that are not in the ledger by now.

        They are stored before the slot is free.

        Raises:
            _TooManyTexts: they were not answered in time, or other requests have shown that they would not be.
        """
        began = time.monotonic()
        found, are_outdated = await self._stored([piece.key for piece in group])
        missing = [piece for piece in group if piece.key not in found]
        if not missing:
            return found, 0
        if len(missing) > _in_time.get(self._place, len(missing)):
            raise _TooManyTexts(name)
        with await self._reserve(prices, lambda: (_tokens(missing), 0), name) as reservation:
            vectors, billed = await self._send(missing, name, encoding, trace)
            billed = billed or _tokens(missing)
            reservation.settle(prices.cost(billed))
        trace.paid += Usage(prompt_tokens=billed, cost_usd=prices.cost(billed))
        rows = self._checked(vectors, len(missing))
        entry = replace(entry, seconds=(time.monotonic() - began) / len(missing))
        await self.ledger.put(*_entries(entry, missing, rows, billed, prices), replace=are_outdated)
        return found | {piece.key: row for piece, row in zip(missing, rows, strict=True)}, len(missing)

    async def _send(self, pieces: list[_Piece], name: str, encoding: str, trace: Trace) -> tuple[list[Any], int]:
        """`provider.send_embedding`; after a timeout, later requests have at most half as many texts."""
        try:
            async with trace.request(self.options.timeout):
                return await provider.send_embedding(self.options, [piece.text for piece in pieces], encoding)
        except Exception as error:
            if len(pieces) == 1 or not provider.timed_out(error):
                raise
            half = (len(pieces) + 1) // 2
            _in_time[self._place] = min(half, _in_time.get(self._place, half))
            raise _TooManyTexts(
                f"{name}: {self.options.where} did not answer within {self.options.timeout:g} seconds. Raise "
                "GRAPHRAG_REQUEST_TIMEOUT, or check the server."
            ) from None

    def _checked(self, vectors: list[Any], wanted: int) -> np.ndarray:
        """The unit rows of a reply; `BadReplyError` when their number or size is wrong."""
        if len(vectors) != wanted:
            raise BadReplyError(f"{len(vectors)} vectors were returned for {wanted} texts.")
        rows = [_decoded(vector) for vector in vectors]
        sizes = {len(row) for row in rows}
        expected = self.dimensions or max(sizes)
        if sizes != {expected} or expected < 2:  # a vector of one number can only be 1 or -1
            raise BadReplyError(f"Vectors of {sorted(sizes)} dimensions were returned, expected {expected}.")
        matrix = np.stack(rows)
        if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
            raise BadReplyError("A vector is zero or not a number.")
        self.dimensions = expected
        return _unit(matrix)

    def _split(self, text: str) -> list[_Piece]:
        """The text in pieces that fit; an empty one is a space, which every provider takes."""
        text, limit, encoding = text if text.strip() else " ", self.options.item_tokens, self.options.encoding
        whole = _Piece(self.key(text), text, encoding)
        if whole.size <= limit:
            return [whole]
        tokens = encode(text, encoding)
        if len(tokens) <= limit:
            return [whole]
        starts = [*tokenizer(encoding).decode_with_offsets(tokens)[1], len(text)]  # of each token, in characters
        pieces, start = [], 0
        while start < len(tokens):
            end = min(start + limit, len(tokens))
            while len(encode(text[starts[start] : starts[end]], encoding)) > limit:
                end -= 1  # a word that is cut may be more tokens than the same letters were inside the word
            part = text[starts[start] : starts[end]]
            pieces.append(_Piece(self.key(part), part, encoding))
            start = end
        return pieces

    def _batches(self, pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
        """Pieces in groups that keep to both limits of a request."""
        group: list[_Piece] = []
        size = 0
        for piece in pieces:
            if group and (len(group) == self.options.batch_size or size + piece.size > self.options.batch_bytes):
                yield group
                group, size = [], 0
            group.append(piece)
            size += piece.size
        if group:
            yield group


def _entries(entry: Entry, pieces: list[_Piece], rows: np.ndarray, billed: int, prices: Prices) -> Iterator[Entry]:
    """The ledger's entries of the pieces of one request; the billed tokens are divided by the pieces' length."""
    ends = np.cumsum([piece.size for piece in pieces])
    shares = np.diff(np.rint(billed * ends / ends[-1]).astype(int), prepend=0).tolist()  # their sum is the bill
    for piece, row, tokens in zip(pieces, rows, shares, strict=True):
        vector, cost = row.astype("<f4").tobytes(), prices.cost(tokens)
        yield replace(entry, key=piece.key, vector=vector, prompt_tokens=tokens, cost_usd=cost)


def _tokens(pieces: Iterable[_Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _vectors(hits: dict[str, Hit]) -> dict[str, np.ndarray]:
    return {key: np.frombuffer(hit.vector, "<f4") for key, hit in hits.items() if hit.vector}


def _joined(pieces: Sequence[_Piece], vectors: dict[str, np.ndarray]) -> np.ndarray:
    """The unit vector of a text: the mean of its pieces' unit vectors, weighted by their tokens."""
    if len(pieces) == 1:
        return vectors[pieces[0].key]
    weights = np.array([piece.tokens for piece in pieces])
    total = weights @ np.stack([vectors[piece.key] for piece in pieces])
    return _unit(total[None])[0]


def _unit(rows: np.ndarray) -> np.ndarray:
    """The rows with length 1, float32."""
    exact = rows.astype(np.float64)
    return np.asarray(exact / np.linalg.norm(exact, axis=1, keepdims=True), np.float32)


def _decoded(vector: Any) -> np.ndarray:
    """One vector, sent as floats or as base64 of little-endian float32; `BadReplyError` if it is neither."""
    try:
        decoded = np.frombuffer(base64.b64decode(vector), "<f4") if isinstance(vector, str) else np.asarray(vector)
    except (ValueError, TypeError) as error:
        raise BadReplyError(f"A vector cannot be read: {error}.") from None
    if decoded.ndim != 1 or decoded.dtype.kind not in "fiu":
        raise BadReplyError("A vector is not a list of numbers.")
    return decoded.astype(np.float32)
