"""What prompts say about a corpus, written by the chat model from passages of it."""

from collections.abc import Sequence
from dataclasses import replace

from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.extras.tuning.entity_types import defined
from graphrag_assets.llm.prompts import fence
from graphrag_assets.llm.task import TaskModel, ask_model
from graphrag_assets.llm.tasks.table import DESCRIBE_CORPUS
from graphrag_assets.text.words import cut_text

_SAMPLE_TOKENS = 6000
_MAX_LENGTH = 600  # characters of a field


async def with_description(
    draft: PromptProfile, model: TaskModel, texts: Sequence[str], language: str | None, encoding: str
) -> PromptProfile:
    """The draft with domain, persona, rating scale, and definitions of its types, from the beginnings of the texts."""
    room = _SAMPLE_TOKENS // max(len(texts), 1)
    found, _ = await ask_model(
        model,
        DESCRIBE_CORPUS,
        sample="\n\n".join(fence(cut_text(text, room, encoding), "passage") for text in texts),
        types="\n".join(f"{kind.type}: {', '.join(kind.examples)}" for kind in draft.entity_types),
        language=language,
    )
    types = defined(draft.entity_types, {one.type: one.definition for one in found.definitions})
    domain, persona, scale = map(_line, (found.domain, found.persona, found.rating_scale))
    return replace(draft, entity_types=types, domain=domain, persona=persona, rating_scale=scale)


def _line(text: str) -> str:
    return " ".join(text.split())[:_MAX_LENGTH]
