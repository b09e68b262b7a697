"""Puts the passages that answer a question first: by a reranking model, or by a chat model."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from graphrag_assets.contracts.answering import Passage, Reranked
from graphrag_assets.contracts.answering import Usage as Cost
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm import provider
from graphrag_assets.llm.ask_model import ModelClient
from graphrag_assets.llm.backend import chat_model, rerank_options
from graphrag_assets.llm.ledger import Entry, Hit, key_of
from graphrag_assets.llm.limits import Trace
from graphrag_assets.llm.model_errors import BadReplyError
from graphrag_assets.llm.model_options import ModelOptions
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.llm.task import TaskModel
from graphrag_assets.llm.tasks.relevance import order_of
from graphrag_assets.settings import Settings
from graphrag_assets.text.words import count_tokens

TASK = "rerank"


@dataclass(frozen=True)
class ModelReranker:
    """Puts the passages first that answer a question, by the model GRAPHRAG_RERANK_MODEL."""

    settings: Settings

    async def arerank(self, question: str, passages: Sequence[Passage]) -> Reranked:
        """The places of the passages, best first: of a reranking model all, of a chat model the best ten."""
        model = await asyncio.to_thread(lambda: self._model)  # imports litellm
        if isinstance(model, TaskModel):
            order, cost = await order_of(model, question, passages)
        else:
            order, paid = await model.rerank(question, [f"{one.title}\n{one.text}".strip() for one in passages])
            cost = Cost(paid.calls, paid.prompt_tokens, paid.completion_tokens, paid.cost_usd)
        return Reranked(tuple(order), cost)

    @cached_property
    def _model(self) -> "RerankModel | TaskModel":
        if provider.is_reranker(self.settings.rerank_model):
            return RerankModel(*rerank_options(self.settings))
        settings = self.settings.model_copy(update={"query_model": self.settings.rerank_model})
        return TaskModel(chat_model(settings, use="query"), prompts_of(self.settings))


class RerankModel(ModelClient[ModelOptions]):
    """A reranking model; see `ModelClient`."""

    operation = "rerank"

    async def rerank(self, query: str, documents: Sequence[str]) -> tuple[list[int], Usage]:
        """The places of the documents that have a valid score, best first, and what was paid now."""
        key = key_of(TASK, self.vendor, self.model, query, list(documents))
        if (order := _stored(await self.ledger.get(key))) is None:
            call = partial(self._answer, key, query, documents)
            (order, paid), first = await self.ledger.single_flight.share(key, call)
            if first and paid.calls:
                return order, paid
        self.usage.add(TASK, Usage(ledger_hits=1))
        return order, Usage()

    async def _answer(self, key: str, query: str, documents: Sequence[str], trace: Trace) -> tuple[list[int], Usage]:
        async with self.counted(TASK, trace):
            send = partial(self._attempt, key, query, documents, trace)
            order = await self.paid(trace, TASK, send, lambda: (_tokens(query, documents), 0), queries=1)
        return order, trace.usage

    async def _attempt(self, key: str, query: str, documents: Sequence[str], trace: Trace) -> list[int]:
        """Send one request, unless another process has stored the answer meanwhile; it is stored before it is used."""
        if (order := _stored(await self.ledger.get(key))) is not None:
            return order
        prices, began = await self.prices(), time.monotonic()
        async with trace.request(self.options.timeout):
            scores, tokens, queries = await provider.send_rerank(self.options, query, list(documents))
        cost = prices.cost(tokens, queries=queries)
        self.pay(trace, Usage(prompt_tokens=tokens, cost_usd=cost))
        valid = {place: score for place, score in reversed(scores) if 0 <= place < len(documents)}
        if not valid:
            raise BadReplyError("The reply scores none of the documents.")
        order = sorted(valid, key=lambda place: (-valid[place], place))
        entry = Entry(key, TASK, TASK, self.vendor, self.model, "{}", json.dumps(order), None, tokens, cost_usd=cost)
        await self.ledger.put(replace(entry, seconds=time.monotonic() - began))
        return order


def _stored(hit: Hit | None) -> list[int] | None:
    return json.loads(hit.response) if hit and hit.response else None


def _tokens(query: str, documents: Sequence[str]) -> int:
    """Tokens of a request, in which the query counts with each document."""
    asked, *texts = count_tokens([query, *documents])
    return asked * len(texts) + sum(texts)
