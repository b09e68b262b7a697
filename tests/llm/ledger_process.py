"""A process that sends requests to a server with a ledger, for tests that kill it or run several.

`python -m tests.llm.ledger_process URL LEDGER FIRST LAST [CONCURRENCY]` prints its usage as JSON, its answers, and
what it sent: the key in the ledger, when that was last looked for there, and when it was stored.
"""

import asyncio
import json
import sys
import time

from graphrag_assets.llm.chat_client import ChatModel
from graphrag_assets.llm.ledger import Entry, Hit, Ledger
from graphrag_assets.llm.model_options import ChatOptions, LimitOptions
from graphrag_assets.llm.rate_limits import Limits
from tests.llm.conftest import Extraction, ask


class WatchedLedger(Ledger):
    """A ledger that records, by the clock all processes share, when keys were looked up and stored."""

    def __init__(self, place: str):
        super().__init__(place)
        self.looked: dict[str, float] = {}
        self.sent: dict[str, tuple[float, float]] = {}

    async def get(self, key: str) -> Hit | None:
        self.looked[key] = time.monotonic()
        return await super().get(key)

    async def put(self, *entries: Entry, replace: bool = False) -> None:
        await super().put(*entries, replace=replace)
        self.sent |= {entry.key: (self.looked[entry.key], time.monotonic()) for entry in entries}


async def main(url: str, ledger: str, first: int, last: int, concurrency: int = 4) -> None:
    limits = Limits(LimitOptions(concurrency=concurrency, backoff_seconds=0.01))
    watched = WatchedLedger(ledger)
    async with ChatModel(ChatOptions("openai/test-model", url), watched, limits) as model:
        requests = [ask(f"Ada wrote letter {n} to Charles in London.", model=Extraction) for n in range(first, last)]
        answers = await asyncio.gather(*(model.complete(request) for request in requests))
        told = {"answers": [answer.text for answer in answers], "sent": watched.sent}
        print(json.dumps(model.usage.total.as_dict() | told), flush=True)


if __name__ == "__main__":
    where, ledger_file, *numbers = sys.argv[1:]
    asyncio.run(main(where, ledger_file, *map(int, numbers)))
