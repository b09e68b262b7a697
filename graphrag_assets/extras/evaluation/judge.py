"""A judge: the chat model says which of two answers is better, in both orders.

Models prefer the answer that they read first, and the longer one (arXiv 2506.06331). So each pair is judged in both
orders, and one answer wins only where both judgments say so: what the order decides is a tie.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from pydantic import model_validator

from graphrag_assets.errors import SettingsError
from graphrag_assets.extras.evaluation.bootstrap import Difference, paired
from graphrag_assets.llm.backend import chat_model
from graphrag_assets.llm.event_loop import wait_for
from graphrag_assets.llm.prompts import Prompts, prompts_of
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Text
from graphrag_assets.llm.tasks.chat_protocol import NOWHERE, Chat
from graphrag_assets.settings import Settings
from graphrag_assets.text.references import without_references

TASK = "judge_answers"


class Judgment(AnswerForm):
    other_names: ClassVar = {"winner": "better"}
    reason: Text = ""
    better: int = 0

    @model_validator(mode="after")
    def _known(self) -> "Judgment":
        if self.better not in (0, 1, 2):
            raise ValueError("better must be 0, 1 or 2")
        return self


class Judged(NamedTuple):
    """How often the first and the second method won, ties, and the share of wins less losses of the first."""

    first: int
    second: int
    ties: int
    difference: Difference


def judge(settings: Settings, questions: Sequence[str], first: Sequence[str], second: Sequence[str]) -> Judged:
    """Judge the answers of two methods to the same questions.

    Raises:
        SettingsError: no chat model is set.
    """
    if not settings.model_of("query"):
        raise SettingsError("A judge needs a chat model: set GRAPHRAG_CHAT_MODEL.")
    chat, prompts = chat_model(settings, use="query"), prompts_of(settings)
    outcomes = [wait_for(verdict(chat, prompts, *each)) for each in zip(questions, first, second, strict=True)]
    wins, losses = outcomes.count(1), outcomes.count(-1)
    difference = paired([0.0] * len(outcomes), [float(one) for one in outcomes])
    return Judged(wins, losses, len(outcomes) - wins - losses, difference)


async def verdict(chat: Chat, prompts: Prompts, question: str, first: str, second: str) -> int:
    """1 if the first answer is better in both orders, -1 if the second is, else 0."""
    forward = await _better(chat, prompts, question, first, second)
    backward = await _better(chat, prompts, question, second, first)
    return {(1, 2): 1, (2, 1): -1}.get((forward, backward), 0)


async def _better(chat: Chat, prompts: Prompts, question: str, first: str, second: str) -> int:
    shown = f"[1]\n{without_references(first)}\n\n[2]\n{without_references(second)}"
    messages = prompts.render(TASK, answers=shown, question=question)
    completion = await chat.complete(NOWHERE.request(TASK, messages, Judgment))
    return int(completion.parsed.better)
