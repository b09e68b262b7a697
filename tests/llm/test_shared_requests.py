"""Requests that ask several things together: one payment, whenever equal ones are asked."""

import asyncio

from graphrag_assets.contracts.answering import Passage, Relevance
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.task import Chat, TaskModel
from graphrag_assets.llm.tasks.relevance import relevance_of
from tests.llm.conftest import Lab, run

PASSAGES = [
    Passage("Sources", number, f"Passage {number}", f"Agamemnon laid {number} miles.") for number in range(1, 4)
]


class SlowChat:
    """A chat model whose caller, having found nothing in the ledger, waits before it requests an answer."""

    def __init__(self, chat: ChatModel) -> None:
        self.chat, self.waits, self.ready = chat, asyncio.Event(), asyncio.Event()
        self.known, self.given_up = chat.known, chat.given_up

    async def complete(self, request: ChatRequest) -> Completion:
        self.waits.set()
        await self.ready.wait()
        return await self.chat.complete(request)


def test_a_request_whose_parts_were_answered_since_its_caller_looked_is_not_sent(lab: Lab) -> None:
    async def both() -> list[Relevance]:
        chat = lab.chat()
        slow = SlowChat(chat)

        async def verdicts(one: Chat) -> Relevance:
            return await relevance_of(TaskModel(one, Prompts()), "How many miles?", PASSAGES)

        late = asyncio.create_task(verdicts(slow))
        await slow.waits.wait()
        first = await verdicts(chat)
        slow.ready.set()
        return [first, await late]

    first, late = run(both())
    assert first.sentences
    assert late.sentences == first.sentences
    assert (first.usage.calls, late.usage.calls) == (1, 0)
    assert len(lab.server.chats) == 1
