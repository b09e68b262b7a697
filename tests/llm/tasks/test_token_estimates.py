"""The counts of a dry run do not depend on the order of its requests."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import starmap

import pytest

from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.chat_protocol import Origin
from graphrag_assets.llm.tasks.extract_claims import extract_claims
from graphrag_assets.llm.tasks.token_estimates import Planned, PlanningChat, Tally
from graphrag_assets.records import TextUnit, UnitExtraction

UNITS = {"short": "Nothing happened.", "long": "It rained on all days of the voyage. " * 40}


class NothingPaid:
    """A ledger without answers; with `slow`, its lookups let other tasks run first."""

    def __init__(self, slow: bool):
        self.slow = slow

    def key(self, request: ChatRequest) -> str:
        return f"{request.task} {request.unit}"

    async def known(self, request: ChatRequest) -> None:
        if self.slow:
            await asyncio.sleep(0)


def planned(slow: bool, together: Callable[..., Awaitable[object]]) -> dict[str, Planned]:
    """The planned requests of two text units without claims, by task and unit."""
    chat = PlanningChat(NothingPaid(slow), Tally(), lambda _: UnitExtraction(), "o200k_base")
    list(chat.remembering(starmap(TextUnit, UNITS.items())))

    async def plan() -> None:
        await together(*(extract_claims(chat, Prompts(), text, origin=Origin(unit=u)) for u, text in UNITS.items()))

    asyncio.run(plan())
    return chat.tally.planned


async def one_after_another(*works: Awaitable[object]) -> None:
    for work in works:
        await work


@pytest.mark.parametrize("slow", [False, True])
def test_a_gleaning_counts_the_expected_answer_of_its_own_text_unit(slow: bool) -> None:
    alone = planned(slow, one_after_another)

    assert planned(slow, asyncio.gather) == alone
    demands = set()
    for unit in UNITS:
        first, more = alone[f"extract_claims {unit}"], alone[f"extract_claims_continue {unit}"]
        assert more.prompt_tokens > first.prompt_tokens + first.completion_tokens
        demands.add(more.prompt_tokens - first.prompt_tokens - first.completion_tokens)
    assert len(demands) == 1  # but for the text and its answer the prompts are the same
