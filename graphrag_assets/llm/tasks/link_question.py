"""Linking of a question to the graph: the names it means, and keywords for particulars and for themes.

After the keyword extraction of LightRAG (Guo et al. 2024, arXiv 2410.05779).
"""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from graphrag_assets.answering import Linked
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import RecordsForm, Text
from graphrag_assets.llm.tasks.chat_protocol import Chat, Origin, parsed_as, usage_of

TASK = "link_question"
_MAX_ITEMS = 10  # of each list


class QuestionLinks(RecordsForm):
    other_names: ClassVar = {
        "entities": "names",
        "low_level_keywords": "low_level",
        "high_level_keywords": "high_level",
    }
    names: Salvaged[Text] = Field(default_factory=list)
    low_level: Salvaged[Text] = Field(default_factory=list)
    high_level: Salvaged[Text] = Field(default_factory=list)


async def links_of(chat: Chat, prompts: Prompts, question: str, history: str | None, origin: Origin) -> Linked:
    """The names and keywords of a question; raises what `chat` raises."""
    messages = prompts.render(TASK, question=question, history=history)
    completion = await chat.complete(origin.request(TASK, messages, QuestionLinks))
    links = parsed_as(QuestionLinks, completion)
    return Linked(_distinct(links.names), _distinct(links.low_level), _distinct(links.high_level), usage_of(completion))


def _distinct(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (" ".join(text.split()) for text in texts))))[:_MAX_ITEMS]
