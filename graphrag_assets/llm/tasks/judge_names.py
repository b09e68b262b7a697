"""Verdicts on pairs of names: whether both stand for one thing."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import field_validator

from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.task import Task, TaskModel, ask_numbered
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, Text

PAIRS_PER_REQUEST = 8
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


JUDGE_NAMES = Task("judge_names", NameVerdicts, {"pairs": "data"})


async def verdicts_on(model: TaskModel, pairs: Sequence[str]) -> list[NameVerdict | None]:
    """The verdict on each pair, given as names with their evidence; None if the answer leaves it out."""
    found, _ = await ask_numbered(model, JUDGE_NAMES, pairs, "pairs")
    return [verdicts[0] if len(verdicts) == 1 else None for verdicts in found]
