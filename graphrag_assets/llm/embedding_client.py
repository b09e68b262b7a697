"""Embeddings: unit vectors of texts, from the ledger or by the provider, in batches."""

import asyncio
import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm import provider
from graphrag_assets.llm.ask_model import ModelClient
from graphrag_assets.llm.ledger import Entry, key_of
from graphrag_assets.llm.limits import Trace
from graphrag_assets.llm.model_errors import BadReplyError, ModelError, RequestRejected, RetriesExhausted
from graphrag_assets.llm.model_options import EmbeddingOptions
from graphrag_assets.runtime.progress import Progress
from graphrag_assets.text.words import count_tokens, encode, tokenizer

_TOO_LONG = re.compile(r"\btokens?\b|\blength\b|too (?:long|large)|\bexceed", re.IGNORECASE)
"""In the words of servers that reject a text for its length."""
_ENCODING = "cl100k_base"
_MIN_TOKENS = 16  # of a text that is cut
_ATTEMPTS_TOGETHER = 2
"""After so many errors that may be those of one text, a batch is sent one text at a time."""
_Texts = Mapping[str, str]
"""Texts as they are sent, by the ledger's key of their vector."""
_Answers = dict[str, np.ndarray | ModelError]
"""By key the unit vector, or why the server does not take the text."""


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
        """Return unit vectors, float32 (n, dimensions), in the order of the texts.

        Equal texts are requested once, and each vector is stored before it is used. A text longer than the model
        accepts is cut. The texts of a batch that is refused are sent one by one. A text that the server does not take,
        while it takes others, gets a vector of NaN, and its reason is added to `errors`; without `errors` it is raised.

        Stored vectors of another size than the model's last ones, of a model that had this name before, are replaced.
        """
        cut = [self._cut(text if text.strip() else " ", self.options.item_tokens) for text in texts]
        keys = [self.key(text) for text in cut]
        wanted = dict(zip(keys, cut, strict=True))
        if self.ledger.unstored:  # vectors that are paid for, which the look-up is to find
            await self.ledger.put()
        hits = sorted((await self.ledger.get_many(list(wanted))).values(), key=lambda hit: hit.created_at)
        vectors = {hit.key: np.frombuffer(hit.vector, "<f4") for hit in hits if hit.vector}
        size = self.dimensions or (len(vectors[hits[-1].key]) if vectors else None)
        if answers := _of_size(size, vectors):
            self.usage.add(task, Usage(ledger_hits=len(answers)))
        entry = self._entry(task, batch, run_id)
        while missing := {key: text for key, text in wanted.items() if key not in answers}:
            answers |= await self._request_all(missing, entry)
            answers = _of_size(self.dimensions, answers)  # which the replies have shown
        refused = {key: answer for key, answer in answers.items() if isinstance(answer, ModelError)}
        if refused and errors is None:
            raise next(iter(refused.values()))
        if errors is not None:
            errors |= {text: str(refused[key]) for text, key in zip(texts, keys, strict=True) if key in refused}
        none = np.full(self.dimensions or size or 0, np.nan, np.float32)
        rows = [none if isinstance(answer := answers[key], ModelError) else answer for key in keys]
        return np.stack(rows) if rows else none[None][:0]

    async def check(self, task: str, batch: str | None = None, run_id: str | None = None) -> int:
        """Request the vector of one word, whatever the ledger has; returns its dimensions. Raises as `embed` does."""
        async with self.counted(task, trace := Trace()):
            vectors = await self._request({uuid.uuid4().hex: "ready"}, self._entry(task, batch, run_id), trace)
        return len(next(iter(vectors.values())))

    def key(self, text: str) -> str:
        """Return the ledger's key of a text's vector."""
        return key_of("embedding", self.vendor, self.model, json.loads(self.options.parameters), text)

    def _entry(self, task: str, batch: str | None, run_id: str | None) -> Entry:
        parameters = self.options.parameters
        return Entry("", "embedding", task, self.vendor, self.model, parameters, batch=batch, run_id=run_id)

    async def _request_all(self, texts: _Texts, entry: Entry) -> _Answers:
        """Request the texts in concurrent batches; the first error stops those that have not been sent."""
        progress = Progress("texts embedded", len(texts), lambda: self.usage.total)

        async def request(group: _Texts) -> _Answers:
            call = partial(self._answer, group, entry)
            answers, _ = await self.ledger.single_flight.share(key_of("embedding request", list(group)), call)
            progress.advance(len(group))
            return answers

        requests = [asyncio.ensure_future(request(group)) for group in self._batches(texts)]
        try:
            answers = await asyncio.gather(*requests)
        finally:
            for one in requests:
                one.cancel()
        return {key: answer for group in answers for key, answer in group.items()}

    async def _answer(self, texts: _Texts, entry: Entry, trace: Trace) -> _Answers:
        """Return the answers for a batch: for all texts together or, if that is refused, for one after another."""
        answers = _Answers()
        async with self.counted(entry.task, trace):
            if len(texts) > 1:
                try:
                    return {**await self._request(texts, entry, trace)}
                except (RequestRejected, RetriesExhausted) as error:
                    _raise_unless_of_texts(error)
            for key, text in texts.items():
                answers[key] = answer = await self._answer_one(key, text, entry, trace)
                if isinstance(answer, ModelError) and len(answers) == 1:
                    try:
                        await self.check(entry.task, entry.batch, entry.run_id)
                    except ModelError:
                        raise answer from None  # the server takes no text
        return answers

    async def _answer_one(self, key: str, text: str, entry: Entry, trace: Trace) -> np.ndarray | ModelError:
        """Return the answer for one text, which is cut while the server says that it is too long."""
        while True:
            try:
                return (await self._request({key: text}, entry, trace))[key]
            except (RequestRejected, RetriesExhausted) as error:
                _raise_unless_of_texts(error)
                n_tokens = len(encode(text, _ENCODING))
                if not _TOO_LONG.search(str(error)) or n_tokens < _MIN_TOKENS:
                    return error
                provider.warn_once(
                    f"{self.options.where} does not take the longest texts: they are cut until it takes them. Set "
                    "GRAPHRAG_EMBEDDING_MAX_TOKENS to the model's limit, which saves the requests that it rejects."
                )
                text = self._cut(text, n_tokens * 3 // 4)

    async def _request(self, texts: _Texts, entry: Entry, trace: Trace) -> dict[str, np.ndarray]:
        """Send one request, with retries: unit vectors by key, which are stored before the slot is free."""
        name = f"{entry.task}, {len(texts)} texts" + (f" of batch {entry.batch}" if entry.batch else "")
        most = _ATTEMPTS_TOGETHER if len(texts) > 1 else None
        prices = await self.prices()

        def n_tokens() -> int:
            return sum(count_tokens(texts.values(), _ENCODING))

        async def send() -> dict[str, np.ndarray]:
            began = time.monotonic()
            async with trace.request(self.options.timeout):
                reply, billed = await provider.send_embedding(self.options, list(texts.values()))
            billed = billed or n_tokens()
            self.budget.spend(cost := prices.cost(billed))
            trace.paid += Usage(prompt_tokens=billed, cost_usd=cost)
            vectors = dict(zip(texts, self._checked(reply, len(texts)), strict=True))
            seconds, entries = (time.monotonic() - began) / len(texts), list[Entry]()
            ends = np.cumsum([len(text.encode()) for text in texts.values()])
            shares = np.diff(np.rint(billed * ends / ends[-1]).astype(int), prepend=0).tolist()  # their sum is the bill
            for (key, vector), share in zip(vectors.items(), shares, strict=True):
                paid = replace(entry, prompt_tokens=share, cost_usd=prices.cost(share), seconds=seconds)
                entries.append(replace(paid, key=key, vector=vector.astype("<f4").tobytes()))
            # Replaced: a vector of another size, or one that another process has paid for meanwhile.
            await self.ledger.put(*entries, replace=True)
            return vectors

        return await self.paid(trace, name, send, lambda: (n_tokens(), 0), n_suspicious=most)

    def _checked(self, vectors: list[Any], wanted: int) -> np.ndarray:
        """Return the unit rows of a reply; `BadReplyError` when their number or size is wrong."""
        try:
            matrix = np.asarray(vectors)
        except (ValueError, TypeError):
            raise BadReplyError("The vectors are not lists of numbers of one length.") from None
        if len(vectors) != wanted or matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
            raise BadReplyError(f"{len(vectors)} vectors of numbers were returned for {wanted} texts.")
        size, expected = matrix.shape[1], self.dimensions or matrix.shape[1]
        if size != expected or size < 2:  # a vector of one number can only be 1 or -1
            raise BadReplyError(f"Vectors of {size} numbers were returned, expected {expected}.")
        matrix = matrix.astype(np.float32).astype(np.float64)
        if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
            raise BadReplyError("A vector is zero or not a number.")
        self.dimensions = expected
        return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)

    def _cut(self, text: str, limit: int) -> str:
        """Return the text, or its beginning of at most `limit` tokens."""
        if len(text.encode()) <= limit:  # no tokenizer makes more tokens than bytes
            return text
        tokens = encode(text, _ENCODING)
        starts = [*tokenizer(_ENCODING).decode_with_offsets(tokens)[1], len(text)]  # in characters
        end = min(limit, len(tokens))
        while len(encode(text[: starts[end]], _ENCODING)) > limit:
            end -= 1  # a word that is cut may be more tokens than the same letters were inside the word
        return text[: starts[end]]

    def _batches(self, texts: _Texts) -> Iterator[_Texts]:
        """Yield the texts in groups that keep to both limits of a request."""
        group: dict[str, str] = {}
        size = 0
        for key, text in texts.items():
            n_bytes = len(text.encode())
            if group and (len(group) == self.options.batch_size or size + n_bytes > self.options.batch_bytes):
                yield group
                group, size = {}, 0
            group[key] = text
            size += n_bytes
        if group:
            yield group


def _of_size(size: int | None, answers: Mapping[str, np.ndarray | ModelError]) -> _Answers:
    """Return the answers without vectors of another size than the model's, as far as it is known."""
    return {key: one for key, one in answers.items() if isinstance(one, ModelError) or size in (None, len(one))}


def _raise_unless_of_texts(error: RequestRejected | RetriesExhausted) -> None:
    """Raise the error of a request, unless it may be that of one of its texts, or of their number."""
    if isinstance(error, RetriesExhausted) and not error.may_be_of_request:
        raise error
