"""Relevance tests: which of several passages, and which of their sentences, help to answer a question."""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from graphrag_assets.contracts.answering import Passage, Relevance
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import Form, RecordsForm
from graphrag_assets.llm.tasks.chat_protocol import Chat, Origin
from graphrag_assets.llm.tasks.shared_requests import answers_on
from graphrag_assets.text.words import sentence_lines, sentences

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

    def request(several: Sequence[Passage]) -> ChatRequest:
        return _request(prompts, question, several, origin)

    found, usage = await answers_on(chat, passages, request, RelevantUnits, _split)
    verdicts = zip(passages, found, strict=True)
    return Relevance(
        {passage.number: _verdicts(one, [passage]).get(0, ()) for passage, one in verdicts if one is not None}, usage
    )


def _request(prompts: Prompts, question: str, passages: Sequence[Passage], origin: Origin) -> ChatRequest:
    messages = prompts.render(
        TASK, passages="\n\n".join(map(_numbered, range(1, len(passages) + 1), passages)), question=question
    )
    return origin.request(TASK, messages, RelevantUnits)


def _numbered(number: int, passage: Passage) -> str:
    """The passage with its number and its title, one numbered sentence a line."""
    lines = (f"({place}) {line}" for place, line in enumerate(sentence_lines(passage.text), 1))
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


def _split(passages: Sequence[Passage], found: RelevantUnits) -> Mapping[int, str]:
    """The verdict on each passage, by place, as the answer to a request of its own."""
    verdicts = _verdicts(found, passages)
    return {
        place: json.dumps(
            {"units": [{"id": 1, "sentences": list(verdicts[place])}] if place in verdicts else []},
            separators=(",", ":"),
        )
        for place in range(len(passages))
    }
