"""A process that asks a server some questions with a ledger, for tests that kill it or run several.

`python -m tests.models.llm.worker URL LEDGER FIRST LAST [CONCURRENCY]` prints its usage as JSON.
"""

import asyncio
import json
import sys

from graphrag_assets.models.llm import ChatModel, ChatOptions, Ledger, LimitOptions, Limits
from tests.models.llm.conftest import Extraction, ask


async def main(url: str, ledger: str, first: int, last: int, concurrency: int = 4) -> None:
    limits = Limits(LimitOptions(concurrency=concurrency, backoff_seconds=0.01))
    async with ChatModel(ChatOptions("openai/test-model", url), Ledger(ledger), limits) as model:
        requests = [ask(f"Ada wrote letter {n} to Charles in London.", model=Extraction) for n in range(first, last)]
        answers = await asyncio.gather(*(model.complete(request) for request in requests))
        print(json.dumps(model.usage.total.as_dict() | {"answers": [answer.text for answer in answers]}), flush=True)


if __name__ == "__main__":
    where, book, *numbers = sys.argv[1:]
    asyncio.run(main(where, book, *map(int, numbers)))
