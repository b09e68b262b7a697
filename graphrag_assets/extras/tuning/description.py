"""What prompts say about a corpus, written by the chat model from passages of it."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.extras.tuning.entity_types import defined
from graphrag_assets.llm.prompts import Prompts, fence
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, Text
from graphrag_assets.llm.tasks.chat_protocol import Chat, Origin, ask
from graphrag_assets.text.words import cut_text

TASK = "tune_prompts"
_SAMPLE_TOKENS = 6000
_MAX_LENGTH = 600  # characters of a field


class TypeDefinition(Form):
    type: Text
    definition: Text = ""


class CorpusDescription(AnswerForm):
    domain: Text = ""
    persona: Text = ""
    rating_scale: Text = ""
    definitions: Salvaged[TypeDefinition] = Field(default_factory=list)


async def with_description(
    draft: PromptProfile,
    chat: Chat,
    prompts: Prompts,
    texts: Sequence[str],
    language: str | None,
    encoding: str,
    run_id: str | None,
) -> PromptProfile:
    """The draft with domain, persona, rating scale, and definitions of its types, from the beginnings of the texts.

    Raises:
        Exception: what `chat` raises.
    """
    room = _SAMPLE_TOKENS // max(len(texts), 1)
    messages = prompts.render(
        TASK,
        sample="\n\n".join(fence(cut_text(text, room, encoding), "passage") for text in texts),
        types="\n".join(f"{kind.type}: {', '.join(kind.examples)}" for kind in draft.entity_types),
        language=language,
    )
    found = await ask(chat, Origin(run_id=run_id).request(TASK, messages, CorpusDescription), CorpusDescription)
    types = defined(draft.entity_types, {one.type: one.definition for one in found.definitions})
    domain, persona, scale = map(_line, (found.domain, found.persona, found.rating_scale))
    return replace(draft, entity_types=types, domain=domain, persona=persona, rating_scale=scale)


def _line(text: str) -> str:
    return " ".join(text.split())[:_MAX_LENGTH]
