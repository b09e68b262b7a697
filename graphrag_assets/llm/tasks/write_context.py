"""Writes the context of a passage within its document, for search.

Contextual retrieval (Anthropic, 2024, https://www.anthropic.com/news/contextual-retrieval). The prompt starts with the
document, which is the same text for all its passages, so that providers bill it from their prompt caches.
"""

from typing import ClassVar

from pydantic import model_validator

from graphrag_assets.contracts.records import PlacedUnit
from graphrag_assets.llm.task import Task, TaskModel, ask_model
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Text
from graphrag_assets.text.words import cut_text

MAX_TOKENS = 200  # twice what the prompt asks for; longer contexts are cut


class UnitContext(AnswerForm):
    other_names: ClassVar = {"summary": "context", "description": "context"}
    context: Text

    @model_validator(mode="after")
    def _not_empty(self) -> "UnitContext":
        if not self.context.strip():
            raise ValueError("the context is empty")
        return self


CONTEXT = Task("text_unit_context", UnitContext, {"document": "document", "passage": "passage"}, optional="language")


async def write_context(model: TaskModel, unit: PlacedUnit, language: str | None, encoding: str = "o200k_base") -> str:
    """The context of `unit` in the model's words, on one line."""
    passage = f"{unit.headings}\n\n{unit.text}".strip()
    answer, _ = await ask_model(model, CONTEXT, document=unit.document, passage=passage, language=language)
    return cut_text(" ".join(answer.context.split()), MAX_TOKENS, encoding)
