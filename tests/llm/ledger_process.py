"""A process that sends requests to a server with a ledger, for tests that kill it or run several.

`python -m tests.llm.ledger_process URL LEDGER FIRST LAST [CONCURRENCY]` prints its usage and its answers as JSON.
"""

import asyncio
import json
import sys

from graphrag_assets.llm.chat_client import ChatModel
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_options import ChatOptions, LimitOptions
from graphrag_assets.llm.rate_limits import Limits
from tests.llm.conftest import Extraction, ask


async def main(url: str, ledger: str, first: int, last: int, concurrency: int = 4) -> None:
    limits = Limits(LimitOptions(concurrency=concurrency, backoff_seconds=0.01))
    async with ChatModel(ChatOptions("openai/test-model", url), Ledger(ledger), limits) as model:
        requests = [ask(f"Ada wrote letter {n} to Charles in London.", model=Extraction) for n in range(first, last)]
        answers = await asyncio.gather(*(model.complete(request) for request in requests))
        print(json.dumps(model.usage.total.as_dict() | {"answers": [answer.text for answer in answers]}), flush=True)


if __name__ == "__main__":
    where, ledger_file, *numbers = sys.argv[1:]
    asyncio.run(main(where, ledger_file, *map(int, numbers)))
