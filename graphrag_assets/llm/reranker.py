"""Puts the passages that answer a question first: by a reranking model, or by a chat model."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from graphrag_assets.answering import Passage, Reranked, Usage
from graphrag_assets.llm import provider
from graphrag_assets.llm.backend import listwise_chat, rerank_model
from graphrag_assets.llm.chat_client import ChatModel
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.llm.rerank_client import RerankModel
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE
from graphrag_assets.llm.tasks.rerank_passages import order_of
from graphrag_assets.settings import Settings


@dataclass(frozen=True)
class ModelReranker:
    """A `Reranker` by the model GRAPHRAG_RERANK_MODEL."""

    settings: Settings

    async def arerank(self, question: str, passages: Sequence[Passage]) -> Reranked:
        """The places of the passages, best first: of a reranking model all, of a chat model the best ten."""
        started = time.perf_counter()
        model = await asyncio.to_thread(lambda: self._model)  # imports litellm
        if isinstance(model, ChatModel):
            order, usage = await order_of(model, prompts_of(self.settings), question, passages, NOWHERE)
        else:
            order, paid = await model.rerank(question, [f"{one.title}\n{one.text}".strip() for one in passages])
            usage = Usage(paid.calls, paid.prompt_tokens, paid.completion_tokens, paid.cost_usd)
        return Reranked(tuple(order), usage + Usage(seconds=time.perf_counter() - started))

    @cached_property
    def _model(self) -> RerankModel | ChatModel:
        if provider.is_reranker(self.settings.rerank_model):
            return rerank_model(self.settings)
        return listwise_chat(self.settings)
