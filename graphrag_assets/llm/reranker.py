"""Puts the passages that answer a question first: by a reranking model, or by a chat model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pydantic import Field

from graphrag_assets.contracts.answering import Passage, Reranked, Usage
from graphrag_assets.llm import provider
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.backend import listwise_chat, rerank_model
from graphrag_assets.llm.prompts import Prompts, prompts_of
from graphrag_assets.llm.rerank_client import RerankModel
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import RecordsForm
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, usage_of
from graphrag_assets.settings import Settings
from graphrag_assets.text.words import cut_text

TASK = "rerank_passages"
BEST = 10
PASSAGE_TOKENS = 500
"""A passage is cut to so many tokens: fifty of them fit every model of today."""


class PassageOrder(RecordsForm):
    other_names: ClassVar = {"passages": "order", "ranking": "order"}
    order: Salvaged[int] = Field(default_factory=list)


@dataclass(frozen=True)
class ModelReranker:
    """Puts the passages first that answer a question, by the model GRAPHRAG_RERANK_MODEL."""

    settings: Settings

    async def arerank(self, question: str, passages: Sequence[Passage]) -> Reranked:
        """The places of the passages, best first: of a reranking model all, of a chat model the best ten."""
        model = await asyncio.to_thread(lambda: self._model)  # imports litellm
        if isinstance(model, ChatModel):
            order, usage = await _order_by_chat(model, prompts_of(self.settings), question, passages)
        else:
            order, paid = await model.rerank(question, [f"{one.title}\n{one.text}".strip() for one in passages])
            usage = Usage(paid.calls, paid.prompt_tokens, paid.completion_tokens, paid.cost_usd)
        return Reranked(tuple(order), usage)

    @cached_property
    def _model(self) -> RerankModel | ChatModel:
        if provider.is_reranker(self.settings.rerank_model):
            return rerank_model(self.settings)
        return listwise_chat(self.settings)


async def _order_by_chat(
    chat: ChatModel, prompts: Prompts, question: str, passages: Sequence[Passage]
) -> tuple[list[int], Usage]:
    """The places of the passages that help most, best first; unknown and repeated numbers are left out.

    One listwise request (RankGPT, Sun et al. 2023).
    """
    listed = "\n\n".join(
        f"[{number}] {passage.title}".rstrip() + f"\n{cut_text(passage.text, PASSAGE_TOKENS)}"
        for number, passage in enumerate(passages, 1)
    )
    messages = prompts.render(TASK, passages=listed, question=question, count=BEST)
    completion = await chat.complete(NOWHERE.request(TASK, messages, PassageOrder))
    numbers = dict.fromkeys(completion.parsed.order)
    return [number - 1 for number in numbers if 1 <= number <= len(passages)], usage_of(completion)
