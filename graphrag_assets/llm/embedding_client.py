"""Embeddings: unit vectors of texts, from the ledger or by the provider, batched by count and tokens."""

import asyncio
import base64
import functools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphrag_assets.llm import provider
from graphrag_assets.llm.budget import Budget
from graphrag_assets.llm.ledger import Entry, Hit, Ledger, canonical, key_of
from graphrag_assets.llm.model_errors import RequestRejected, RetriesExhausted
from graphrag_assets.llm.model_options import EmbeddingOptions, TokenUsage
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.rate_limits import Limits
from graphrag_assets.llm.retry import BadReplyError, Target, call, send
from graphrag_assets.llm.single_flight import Trace
from graphrag_assets.llm.usage import Usage, UsageMeter, used
from graphrag_assets.progress import Progress
from graphrag_assets.text import encode, tokenizer

_no_base64: set[tuple[str, str | None]] = set()  # models whose servers have refused it, learnt once per process


@dataclass(frozen=True)
class _Piece:
    """A part of a text that fits into a request; most texts are one piece."""

    key: str
    text: str
    encoding: str

    @functools.cached_property
    def size(self) -> int:
        """Bytes in UTF-8. No tokenizer makes more tokens of a text, so most limits are kept without counting tokens."""
        return len(self.text.encode())

    @functools.cached_property
    def tokens(self) -> int:
        return len(encode(self.text, self.encoding))


class EmbeddingModel:
    """An embedding model; what its calls used is in `usage`, under the task given to `embed`."""

    def __init__(
        self, options: EmbeddingOptions, ledger: Ledger, limits: Limits | None = None, budget: Budget | None = None
    ):
        self.options = options
        self.ledger = ledger
        self.limits = limits or Limits.of(options.model, options.base_url)
        self.budget = budget or Budget()
        self.usage = UsageMeter()
        self.dimensions: int | None = options.dimensions
        self._target = Target(options.model, options.base_url, options.api_key, options.timeout, self.limits)
        self._prices: Prices | None = None

    async def embed(
        self, texts: Sequence[str], *, task: str = "embed", batch: str | None = None, run_id: str | None = None
    ) -> np.ndarray:
        """Unit vectors, float32 (n, dimensions), in the order of the texts.

        Equal texts are asked for once, and each vector is stored before it is used. A text longer than the
        model takes is split at token boundaries; its vector is the mean of its pieces' by their tokens.

        Raises:
            RetriesExhausted: failed too often, or vectors of a wrong number or size came every time.
            RequestRejected, BudgetExceeded, CircuitOpen, LedgerError: there are no vectors.
        """
        split = [self._split(text) for text in texts]
        pieces = {piece.key: piece for parts in split for piece in parts}
        vectors = _vectors(await self.ledger.get_many(list(pieces)))
        missing = [piece for key, piece in pieces.items() if key not in vectors]
        if vectors:
            self.usage.add(task, Usage(ledger_hits=len(vectors)))
        if missing:
            books = Entry("", "embedding", task, *provider.provider_of(self.options.model), "{}", batch=batch)
            books = replace(books, parameters=canonical(self._parameters()), run_id=run_id)
            vectors |= await self._embed_pieces(missing, books)
        if not texts:
            return np.zeros((0, self.dimensions or 0), np.float32)
        rows = np.stack([_joined(parts, vectors) for parts in split])
        self.dimensions = rows.shape[1]
        return rows

    async def unpaid(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each request that `embed` would send for the texts; nothing is sent."""
        pieces = {piece.key: piece for text in texts for piece in self._split(text)}
        stored = await self.ledger.get_many(list(pieces))
        missing = [piece for key, piece in pieces.items() if key not in stored]
        return [_tokens(group) for group in self._batches(missing)]

    async def stored_keys(self, texts: Sequence[str]) -> set[str]:
        """The ledger's keys of all that the vectors of the texts are made of, as far as it is stored."""
        return set(await self.ledger.get_many([piece.key for text in texts for piece in self._split(text)]))

    def key(self, text: str) -> str:
        """The ledger's key of a text's vector."""
        vendor, name = provider.provider_of(self.options.model)
        return key_of("embedding", vendor, name, self._parameters(), text)

    async def close(self) -> None:
        """Let the calls under way finish, and close the connections of this event loop."""
        await self.ledger.flights.land()
        await provider.close_clients()

    async def __aenter__(self) -> "EmbeddingModel":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _load(self) -> None:
        if self._prices is None:
            self._prices = Prices.of(self.options.model, self.options.prices)
            provider.introduce(self.options.model, "embedding")

    def _parameters(self) -> dict[str, Any]:
        return {"dimensions": self.options.dimensions} if self.options.dimensions else {}

    async def _embed_pieces(self, pieces: Sequence[_Piece], books: Entry) -> dict[str, np.ndarray]:
        """Send the pieces in batches, at once; the first error stops what has not been sent."""
        await asyncio.to_thread(self._load)

        progress = Progress("texts embedded", len(pieces), lambda: self.usage.total)

        async def one(group: list[_Piece]) -> dict[str, np.ndarray]:
            key = key_of("embedding request", [piece.key for piece in group])
            vectors, _ = await self.ledger.flights.share(key, lambda trace: self._send(group, books, trace))
            progress.advance(len(group))
            return vectors

        requests = [asyncio.ensure_future(one(group)) for group in self._batches(pieces)]
        try:
            answers = await asyncio.gather(*requests)
        finally:
            for request in requests:
                request.cancel()
        return {key: vector for answer in answers for key, vector in answer.items()}

    async def _send(self, group: list[_Piece], books: Entry, trace: Trace) -> dict[str, np.ndarray]:
        """One request: the pieces' unit vectors by key, stored."""
        name = f"{books.task}, {len(group)} texts" + (f" of batch {books.batch}" if books.batch else "")
        try:
            vectors, paid = await self._ask(group, name, books, trace)
        except Exception as error:
            self.usage.add(books.task, replace(used(trace), failures=1))
            if isinstance(error, RetriesExhausted | RequestRejected):
                self.limits.circuit.gave_up(str(error))
            raise
        self.limits.circuit.succeeded()
        self.usage.add(books.task, used(trace) + Usage(ledger_hits=len(group) - paid))
        return vectors

    def _entries(self, books: Entry, pieces: list[_Piece], rows: np.ndarray, billed: int) -> Iterator[Entry]:
        """The ledger's rows of the pieces of one request, whose billed tokens are theirs by their length."""
        assert self._prices is not None
        ends = np.cumsum([piece.size for piece in pieces])
        shares = np.diff(np.rint(billed * ends / ends[-1]).astype(int), prepend=0).tolist()  # their sum is the bill
        for piece, row, tokens in zip(pieces, rows, shares, strict=True):
            vector, cost = row.astype("<f4").tobytes(), self._prices.cost(tokens)
            yield replace(books, key=piece.key, vector=vector, prompt_tokens=tokens, cost_usd=cost)

    async def _ask(
        self, group: list[_Piece], name: str, books: Entry, trace: Trace
    ) -> tuple[dict[str, np.ndarray], int]:
        """Unit vectors of the pieces by key, and how many were sent; those are stored before the slot is free.

        The vectors come as base64 or, where that is refused, as numbers.
        """
        place = (self.options.model, self.options.base_url)
        base64_wanted = self.options.base64 and provider.speaks_openai(self.options.model)
        encoding = "base64" if base64_wanted and place not in _no_base64 else "float"
        expected = _tokens(group) if self.limits.counts_tokens else 0

        async def attempt() -> tuple[dict[str, np.ndarray], int]:
            found, prices, began = {}, self._prices, time.monotonic()
            assert prices is not None
            keys = [piece.key for piece in group]
            if any(map(self.ledger.may_have, keys)):
                found = _vectors(await self.ledger.get_many(keys))  # another process has paid meanwhile
            missing = [piece for piece in group if piece.key not in found]
            if not missing:
                return found, 0
            with self.budget.reserve(lambda: prices.cost(_tokens(missing)), name) as reservation:
                asked = provider.send_embedding(self.options, [piece.text for piece in missing], encoding)
                vectors, billed = await send(self._target, asked, trace)
                billed = billed or _tokens(missing)
                reservation.settle(prices.cost(billed))
            trace.paid += TokenUsage(billed, 0, prices.cost(billed))
            rows = self._checked(vectors, len(missing))
            self.limits.used(expected, billed)
            entry = replace(books, seconds=(time.monotonic() - began) / len(missing))
            await self.ledger.put(*self._entries(entry, missing, rows, billed))
            return found | {piece.key: row for piece, row in zip(missing, rows, strict=True)}, len(missing)

        try:
            return await call(self._target, attempt, trace, name, expected)
        except RequestRejected as error:
            if encoding == "float" or not any(word in str(error) for word in ("encoding", "base64")):
                raise
        _no_base64.add(place)
        return await self._ask(group, name, books, trace)

    def _checked(self, vectors: list[Any], wanted: int) -> np.ndarray:
        """The unit rows of a reply; `BadReplyError` when their number or size is wrong."""
        if len(vectors) != wanted:
            raise BadReplyError(f"{len(vectors)} vectors came for {wanted} texts.")
        rows = [_decoded(vector) for vector in vectors]
        sizes = {len(row) for row in rows}
        expected = self.dimensions or max(sizes)
        if sizes != {expected} or not expected:
            raise BadReplyError(f"Vectors of {sorted(sizes)} dimensions came, not of {expected}.")
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
    """One vector, sent as floats or as base64 of little-endian float32."""
    if isinstance(vector, str):
        return np.frombuffer(base64.b64decode(vector), "<f4")
    return np.asarray(vector, np.float32)
