"""Listwise reranking: one request to a chat model for the order of passages (RankGPT, Sun et al. 2023)."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from graphrag_assets.answering import Passage, Usage
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import RecordsForm
from graphrag_assets.llm.tasks.chat_protocol import Chat, Origin, parsed_as, usage_of
from graphrag_assets.text import cut_text

TASK = "rerank_passages"
BEST = 10
PASSAGE_TOKENS = 500
"""A passage is cut to so many tokens: fifty of them fit every model of today."""


class PassageOrder(RecordsForm):
    other_names: ClassVar = {"passages": "order", "ranking": "order"}
    order: Salvaged[int] = Field(default_factory=list)


async def order_of(
    chat: Chat, prompts: Prompts, question: str, passages: Sequence[Passage], origin: Origin
) -> tuple[list[int], Usage]:
    """The places of the passages that help most, best first; unknown and repeated numbers are left out.

    Raises:
        Exception: what `chat` raises.
    """
    listed = "\n\n".join(
        f"[{number}] {passage.title}".rstrip() + f"\n{cut_text(passage.text, PASSAGE_TOKENS)}"
        for number, passage in enumerate(passages, 1)
    )
    messages = prompts.render(TASK, passages=listed, question=question, count=BEST)
    completion = await chat.complete(origin.request(TASK, messages, PassageOrder))
    numbers = dict.fromkeys(parsed_as(PassageOrder, completion).order)
    return [number - 1 for number in numbers if 1 <= number <= len(passages)], usage_of(completion)
