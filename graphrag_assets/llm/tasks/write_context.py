"""Writes the context of a passage within its document, for search.

Contextual retrieval (Anthropic, 2024, https://www.anthropic.com/news/contextual-retrieval). The prompt starts with the
document, which is the same text for all its passages, so that providers bill it from their prompt caches.
"""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import model_validator

from graphrag_assets.contracts.records import PlacedUnit
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Chat, Origin, ask
from graphrag_assets.text.words import cut_text

TASK = "text_unit_context"


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """Limits of a context: `max_tokens` is twice what the prompt asks for; longer ones are cut."""

    max_tokens: int = 200
    language: str | None = None
    encoding: str = "o200k_base"


_DEFAULTS = ContextOptions()


class UnitContext(AnswerForm):
    other_names: ClassVar = {"summary": "context", "description": "context"}
    context: Text

    @model_validator(mode="after")
    def _not_empty(self) -> "UnitContext":
        if not self.context.strip():
            raise ValueError("the context is empty")
        return self


async def write_context(
    chat: Chat, prompts: Prompts, unit: PlacedUnit, options: ContextOptions = _DEFAULTS, origin: Origin = NOWHERE
) -> str:
    """The context of `unit` in the model's words, on one line, within `options.max_tokens`.

    Raises:
        Exception: what `chat` raises.
    """
    answer = await ask(chat, context_request(prompts, unit, options, origin), UnitContext)
    return cut_text(" ".join(answer.context.split()), options.max_tokens, options.encoding)


def context_request(
    prompts: Prompts, unit: PlacedUnit, options: ContextOptions = _DEFAULTS, origin: Origin = NOWHERE
) -> ChatRequest:
    """The request for the context of one text unit."""
    passage = f"{unit.headings}\n\n{unit.text}".strip()
    messages = prompts.render(TASK, document=unit.document, passage=passage, language=options.language)
    return origin.request(TASK, messages, UnitContext)
