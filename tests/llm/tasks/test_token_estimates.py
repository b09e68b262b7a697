"""The counts of a dry run do not depend on the order of its requests."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import starmap

import pytest

from graphrag_assets.contracts.records import TextUnit, UnitExtraction
from graphrag_assets.extras.cost_preview.token_estimates import Planned, PlanningChat, Tally
from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.chat_protocol import Origin
from graphrag_assets.llm.tasks.extract_graph import extract_text_unit

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

    async def given_up(self, request: ChatRequest) -> None:
        """No request is given up."""


def planned(slow: bool, together: Callable[..., Awaitable[object]]) -> dict[str, Planned]:
    """The planned requests of two text units in which nothing is found, by task and unit."""
    chat = PlanningChat(NothingPaid(slow), Tally(), lambda _: UnitExtraction(), "o200k_base")
    list(chat.remembering(starmap(TextUnit, UNITS.items())))

    async def plan() -> None:
        await together(*(extract_text_unit(chat, Prompts(), text, origin=Origin(unit=u)) for u, text in UNITS.items()))

    asyncio.run(plan())
    return chat.tally.planned


async def one_after_another(*works: Awaitable[object]) -> None:
    for work in works:
        await work


@pytest.mark.parametrize("slow", [False, True])
def test_a_gleaning_repeats_the_tokens_of_the_first_request_of_its_own_text_unit(slow: bool) -> None:
    alone = planned(slow, one_after_another)

    assert planned(slow, asyncio.gather) == alone
    more = set()
    for unit in UNITS:
        first, second = alone[f"extract_graph {unit}"], alone[f"extract_graph_continue {unit}"]
        assert (first.repeated_tokens, second.repeated_tokens) == (0, first.prompt_tokens)
        more.add(second.prompt_tokens - first.prompt_tokens)
    assert len(more) == 1  # but for the text the prompts are the same
