"""The judge: one answer wins only if it does so in both orders."""

import asyncio
from types import SimpleNamespace

import pytest

from graphrag_assets.errors import SettingsError
from graphrag_assets.extras.evaluation.judge import Judgment, judge, verdict
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.settings import Settings


class Reader:
    """A chat model that has a preference: by content, or always the first, or none."""

    def __init__(self, prefers: str) -> None:
        self.prefers = prefers

    async def complete(self, request):
        shown = request.messages[-1]["content"]
        first, second = shown.index("[1]"), shown.index("[2]")
        place = shown.find(self.prefers)
        better = {"first": 1, "none": 0}.get(self.prefers, 1 if first < place < second else 2)
        return SimpleNamespace(parsed=Judgment(better=better))


@pytest.mark.parametrize(("prefers", "outcome"), [("Agamemnon", 1), ("Niagara", -1), ("first", 0), ("none", 0)])
def test_what_the_order_decides_is_a_tie(prefers, outcome):
    prompts = prompts_of(Settings())
    assert asyncio.run(verdict(Reader(prefers), prompts, "Which ship?", "The Agamemnon.", "The Niagara.")) == outcome


def test_a_judge_needs_a_chat_model():
    with pytest.raises(SettingsError, match="GRAPHRAG_CHAT_MODEL"):
        judge(Settings(), [], [], [])
