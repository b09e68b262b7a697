"""Several things that one request asks about, each of which has an answer of its own in the ledger."""

import asyncio
from pathlib import Path

from graphrag_assets.contracts.answering import Passage
from graphrag_assets.llm.model_options import ChatRequest, Completion
from tests.openai_server import running
from tests.query.modeled import chat_answerer, says

PASSAGES = [Passage("Sources", n, f"Report {n}", f"The Niagara met ship {n}.") for n in range(3)]


def test_what_was_answered_since_it_was_looked_for_is_not_paid_for_again(tmp_path: Path) -> None:
    with running() as server:
        server.content = says(RelevantUnits={"units": [{"id": n, "sentences": [1]} for n in (1, 2, 3)]})
        first = chat_answerer(server, tmp_path)
        answers = asyncio.run(first.atest("What did the Niagara meet?", PASSAGES))
        assert len(server.chats) == 1

        late, looked = chat_answerer(server, tmp_path), list[ChatRequest]()
        stored_answer = type(late.chat).stored_answer

        async def looked_too_early(self: object, request: ChatRequest) -> Completion | None:
            """As in another thread, which looked a moment before the answers were stored."""
            looked.append(request)
            return None if len(looked) <= len(PASSAGES) else await stored_answer(self, request)

        late.chat.__class__ = type("Late", (type(late.chat),), {"stored_answer": looked_too_early})
        again = asyncio.run(late.atest("What did the Niagara meet?", PASSAGES))
        assert len(server.chats) == 1
        assert again.sentences == answers.sentences
