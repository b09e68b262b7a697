"""Relevance tests: which of several passages, and which of their sentences, help to answer a question.

Several passages share a request. Each verdict is stored on its own, so that the same question asks again only for
passages that are new.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from graphrag_assets.answering import Passage, Relevance
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import Form, RecordsForm
from graphrag_assets.llm.tasks.chat_protocol import Chat, Origin, checked_as, parsed_as, usage_of
from graphrag_assets.text import sentences

TASK = "relevance_test"


class RelevantUnit(Form):
    other_names: ClassVar = {"number": "id", "unit": "id", "passage": "id"}
    id: int
    sentences: Salvaged[int] = Field(default_factory=list)


class RelevantUnits(RecordsForm):
    other_names: ClassVar = {"passages": "units", "relevant": "units"}
    units: Salvaged[RelevantUnit] = Field(default_factory=list)


async def relevance_of(
    chat: Chat, prompts: Prompts, question: str, passages: Sequence[Passage], origin: Origin
) -> Relevance:
    """The relevant sentences by number of the passage; only passages without a stored verdict are asked for.

    Raises:
        Exception: what `chat` raises.
    """
    alone = [_request(prompts, question, [passage], origin) for passage in passages]
    known = [await chat.known(request) for request in alone]
    found = {
        passage.number: _verdicts(parsed_as(RelevantUnits, stored), [passage]).get(0, ())
        for passage, stored in zip(passages, known, strict=True)
        if stored is not None
    }
    asked = [place for place, stored in enumerate(known) if stored is None]
    if not asked:
        return Relevance(found)
    of_asked = [passages[place] for place in asked]
    request = _request(prompts, question, of_asked, origin)
    if len(asked) > 1:
        parts = tuple(alone[place] for place in asked)
        request = replace(request, parts=parts, split=partial(_split, of_asked))
    completion = await chat.complete(request)
    verdicts = _verdicts(parsed_as(RelevantUnits, completion), of_asked)
    found |= {passage.number: verdicts.get(place, ()) for place, passage in enumerate(of_asked)}
    return Relevance(found, usage_of(completion))


def _request(prompts: Prompts, question: str, passages: Sequence[Passage], origin: Origin) -> ChatRequest:
    messages = prompts.render(
        TASK, passages="\n\n".join(map(_numbered, range(1, len(passages) + 1), passages)), question=question
    )
    return origin.request(TASK, messages, RelevantUnits)


def _numbered(number: int, passage: Passage) -> str:
    """The passage with its number and its title, one numbered sentence a line."""
    texts = (passage.text[sentence.start : sentence.end] for sentence in sentences(passage.text))
    lines = (f"({place}) {' '.join(text.split())}" for place, text in enumerate(texts, 1))
    return "\n".join([f"[{number}] {passage.title}".rstrip(), *lines])


def _verdicts(found: RelevantUnits, passages: Sequence[Passage]) -> dict[int, tuple[int, ...]]:
    """The relevant sentences by place of the passage; of a passage without valid sentences, all."""
    verdicts: dict[int, tuple[int, ...]] = {}
    for unit in found.units:
        place = unit.id - 1
        if 0 <= place < len(passages):
            n = len(sentences(passages[place].text))
            valid = tuple(sorted({number for number in unit.sentences if 1 <= number <= n}))
            verdicts[place] = valid or tuple(range(1, n + 1)) or (1,)
    return verdicts


def _split(passages: Sequence[Passage], found: Any) -> Mapping[int, str]:
    """The verdict on each passage, by place, as the answer to a request of its own."""
    verdicts = _verdicts(checked_as(RelevantUnits, found), passages)
    return {
        place: json.dumps(
            {"units": [{"id": 1, "sentences": list(verdicts[place])}] if place in verdicts else []},
            separators=(",", ":"),
        )
        for place in range(len(passages))
    }
