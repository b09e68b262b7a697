"""Verdicts on pairs of names: whether both stand for one thing."""

import json
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import ClassVar, Literal

from pydantic import field_validator

from graphrag_assets.contracts.answering import Usage
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Chat, Origin
from graphrag_assets.llm.tasks.shared_requests import answers_on, by_place

TASK = "judge_names"
PAIRS_PER_REQUEST = 8
_id = attrgetter("id")
_SYNONYMS = {"not sure": "unsure", "yes": "same", "no": "different"}


class NameVerdict(Form):
    other_names: ClassVar = {"number": "id", "pair": "id", "decision": "verdict"}
    id: int
    reason: Text = ""
    verdict: Literal["same", "different", "unsure"]

    @field_validator("verdict", mode="before")
    @classmethod
    def _plain(cls, value: object) -> object:
        return _SYNONYMS.get(word := value.strip().lower(), word) if isinstance(value, str) else value


class NameVerdicts(AnswerForm):
    other_names: ClassVar = {"pairs": "verdicts"}
    verdicts: Salvaged[NameVerdict]


async def verdicts_on(
    chat: Chat, prompts: Prompts, pairs: Sequence[str], origin: Origin = NOWHERE
) -> tuple[list[NameVerdict | None], Usage]:
    """The verdict on each pair, given as names with their evidence; None if the answer leaves it out.

    Raises:
        Exception: what `chat` raises.
    """

    def request(several: Sequence[str]) -> ChatRequest:
        listed = "\n\n".join(f"[{number}] {pair}" for number, pair in enumerate(several, 1))
        return origin.request(TASK, prompts.render(TASK, pairs=listed), NameVerdicts)

    found, usage = await answers_on(chat, pairs, request, NameVerdicts, _split)
    return [None if one is None else by_place(one.verdicts, _id, 1).get(0) for one in found], usage


def _split(pairs: Sequence[str], found: NameVerdicts) -> Mapping[int, str]:
    """The verdict on each pair, by place, as the answer to a request of its own."""
    return {
        place: json.dumps({"verdicts": [{**one.model_dump(), "id": 1}]}, separators=(",", ":"), ensure_ascii=False)
        for place, one in by_place(found.verdicts, _id, len(pairs)).items()
    }
