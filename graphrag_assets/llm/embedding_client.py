"""Embeddings: unit vectors of texts, from the ledger or by the provider, in batches."""

import asyncio
import base64
import json
import logging
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm import provider
from graphrag_assets.llm.ledger import Entry, Hit, key_of
from graphrag_assets.llm.model_client import ModelClient
from graphrag_assets.llm.model_errors import BadReplyError, ModelError, RequestRejected, RetriesExhausted
from graphrag_assets.llm.model_options import EmbeddingOptions
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.retry import MAY_BE_OF_REQUEST, attempts
from graphrag_assets.llm.single_flight import Trace
from graphrag_assets.runtime.progress import Progress
from graphrag_assets.text.words import encode, tokenizer

_log = logging.getLogger(__name__)
_TOO_LONG = re.compile(r"\btokens?\b|\blength\b|too (?:long|large)|\bexceed", re.IGNORECASE)
"""In the words of servers that reject a text for its length."""
_MIN_TOKENS = 16  # of a piece that is split
_ATTEMPTS_TOGETHER = 2
"""After so many errors that may be those of one text, a group is sent in halves."""
_warned: set[tuple[str, str | None]] = set()  # models whose limit on tokens was reported, once per process
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


_Answers = Mapping[str, np.ndarray | ModelError]
"""By the key of a piece its unit vector, or why the server does not take it."""


class EmbeddingModel(ModelClient[EmbeddingOptions]):
    """An embedding model; see `ModelClient`. Usage is counted under the task given to `embed`."""

    operation = "embeddings"
    dimensions: int | None = None  # of the model's replies, known with the first one

    async def embed(
        self,
        texts: Sequence[str],
        *,
        task: str = "embed",
        batch: str | None = None,
        run_id: str | None = None,
        errors: dict[str, str] | None = None,
    ) -> np.ndarray:
        """Unit vectors, float32 (n, dimensions), in the order of the texts.

        Equal texts are requested once, and each vector is stored before it is used. A text longer than the
        model accepts is split at token boundaries; its vector is the mean of its pieces' by their tokens.

        A text that the server does not take, while it takes others, gets a vector of NaN, and its reason is added to
        `errors`; without `errors` the reason is raised.

        Texts that are not answered within the timeout are sent in halves; later requests keep to the number that was.

        Stored vectors of another size than the model's replies, of a model that had this name before, are replaced.

        Raises:
            RetriesExhausted: failed too often, or always returned vectors of a wrong number or size.
            RequestRejected, BudgetExceeded, CircuitOpen, LedgerError: there are no vectors.
        """
        refused: dict[str, ModelError] = {}
        split = [self._split(text) for text in texts]
        pieces = {piece.key: piece for parts in split for piece in parts}
        vectors, _ = await self._stored(list(pieces))
        if vectors:
            self.usage.add(task, Usage(ledger_hits=len(vectors)))
        vendor, name = provider.provider_of(self.options.model)
        entry = Entry("", "embedding", task, vendor, name, self.options.parameters, batch=batch, run_id=run_id)
        while missing := [piece for key, piece in pieces.items() if key not in vectors | refused]:
            answers = await self._request_all(missing, entry)
            refused |= {key: answer for key, answer in answers.items() if isinstance(answer, ModelError)}
            vectors = self._fitting(vectors | _without_errors(answers))
        if len({len(vector) for vector in vectors.values()}) > 1:
            await self.check(task, batch, run_id)  # which of them has the size of the present model
            return await self.embed(texts, task=task, batch=batch, run_id=run_id, errors=errors)
        if refused and errors is None:
            raise next(iter(refused.values()))
        if not texts:
            return np.zeros((0, self.dimensions or 0), np.float32)
        if errors is not None:
            reasons = (
                (text, refused[piece.key])
                for text, parts in zip(texts, split, strict=True)
                for piece in parts
                if piece.key in refused
            )
            errors |= {text: str(reason) for text, reason in reasons}
        vectors |= dict.fromkeys(refused, np.full(self.dimensions or 0, np.nan, np.float32))
        return np.stack([_joined(parts, vectors) for parts in split])

    async def check(self, task: str, batch: str | None = None, run_id: str | None = None) -> int:
        """Request the vector of one word, whatever the ledger has; returns its dimensions. Raises as `embed` does."""
        vendor, name = provider.provider_of(self.options.model)
        piece = _Piece(uuid.uuid4().hex, "ready", self.options.encoding)
        entry = Entry("", "embedding", task, vendor, name, self.options.parameters, batch=batch, run_id=run_id)
        async with self._counting_failure(task, trace := Trace()):
            vectors, _ = await self._request([piece], entry, await self.prices(), trace)
        self.usage.add(task, trace.usage)
        return len(vectors[piece.key])

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

    async def _request_all(self, pieces: Sequence[_Piece], entry: Entry) -> _Answers:
        """Request the pieces in concurrent batches; the first error stops those that have not been sent."""
        progress = Progress("texts embedded", len(pieces), lambda: self.usage.total)

        async def request(group: list[_Piece]) -> _Answers:
            key = key_of("embedding request", [piece.key for piece in group])
            call = partial(self._answer, group, entry)
            answers, _ = await self.ledger.single_flight.share(key, call)
            progress.advance(len(group))
            return answers

        requests = [asyncio.ensure_future(request(group)) for group in self._batches(pieces)]
        try:
            answers = await asyncio.gather(*requests)
        finally:
            for one in requests:
                one.cancel()
        return {key: found for answer in answers for key, found in answer.items()}

    async def _answer(self, group: list[_Piece], entry: Entry, trace: Trace) -> _Answers:
        """Unit vectors of the pieces by key, stored, or why the server does not take a piece.

        In halves, and those in halves, while the server is too slow or does not take the pieces together.
        """
        vectors: dict[str, np.ndarray | ModelError] = {}
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
                    waiting[:0] = _halves(part)
                    continue
                except (RequestRejected, RetriesExhausted) as error:
                    if isinstance(error, RetriesExhausted) and error.status not in MAY_BE_OF_REQUEST:
                        raise
                    if len(part) > 1:
                        waiting[:0] = _halves(part)
                    else:
                        vectors |= await self._answer_difficult(part[0], entry, trace, error)
                    continue
                vectors |= found
                sent, began = sent + n_sent, time.monotonic()
        self.limits.breaker.succeeded()
        n_stored = sum(piece.key in _without_errors(vectors) for piece in group) - sent
        self.usage.add(entry.task, trace.usage + Usage(ledger_hits=max(n_stored, 0)))
        return vectors

    async def _answer_difficult(self, piece: _Piece, entry: Entry, trace: Trace, error: ModelError) -> _Answers:
        """The answer for a piece that the server does not take: from its halves if it is too long, else the error.

        Raises:
            ModelError: `error`, if the server does not take any other text, either.
        """
        try:
            await self.check(entry.task, entry.batch, entry.run_id)
        except ModelError:
            raise error from None
        if not _TOO_LONG.search(str(error)) or piece.tokens < _MIN_TOKENS:
            return {piece.key: error}
        self._warn_of_limit(piece)
        parts = self._split(piece.text, -(-piece.tokens // 2))
        vectors = await self._answer(parts, entry, trace)
        errors = [vector for vector in vectors.values() if isinstance(vector, ModelError)]
        return {piece.key: errors[0] if errors else _joined(parts, _without_errors(vectors))}

    def _warn_of_limit(self, piece: _Piece) -> None:
        if self._place not in _warned:
            _warned.add(self._place)
            _log.warning(
                "%s does not take texts of %d tokens: they are sent in parts, whose mean is their vector. Set "
                "GRAPHRAG_EMBEDDING_MAX_TOKENS to the model's limit, which saves the requests that it rejects.",
                self.options.where,
                piece.tokens,
            )

    async def _request(
        self, group: list[_Piece], entry: Entry, prices: Prices, trace: Trace
    ) -> tuple[dict[str, np.ndarray], int]:
        """See `_attempt`, with retries; as base64 or, where that is rejected, as numbers."""
        name = f"{entry.task}, {len(group)} texts" + (f" of batch {entry.batch}" if entry.batch else "")
        expected = _tokens(group) if self.limits.counts_tokens else 0
        most = _ATTEMPTS_TOGETHER if len(group) > 1 else None
        while True:
            encoding = "float"
            if self.options.base64 and provider.speaks_openai(self.options.model) and self._place not in _no_base64:
                encoding = "base64"
            try:
                async with self._slot(trace):
                    async for attempt in attempts(self.options, self.limits, trace, name, expected, most):
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

    def _split(self, text: str, limit: int | None = None) -> list[_Piece]:
        """The text in pieces of at most `limit` tokens; an empty one is a space, which every provider takes."""
        limit = limit or self.options.item_tokens
        text, encoding = text if text.strip() else " ", self.options.encoding
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


def _halves(group: list[_Piece]) -> list[list[_Piece]]:
    return [group[: len(group) // 2], group[len(group) // 2 :]]


def _without_errors(answers: _Answers) -> dict[str, np.ndarray]:
    return {key: answer for key, answer in answers.items() if not isinstance(answer, ModelError)}


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
