"""A process that makes calls of $1 to $2 as long as the budget allows; prints what it has spent.

python -m tests.llm.spender LEDGER BUDGET
"""

import asyncio
import random
import sys
import uuid

from graphrag_assets.llm.budget import Budget
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_errors import BudgetExceeded
from tests.llm.test_ledger import entry


async def spend(ledger: Ledger, budget: Budget) -> None:
    """Ten calls at once."""

    async def call() -> None:
        with await budget.reserve(ledger, lambda: (1.0, 2.0), "a call", 5.0) as reservation:
            print("calls", flush=True)
            await asyncio.sleep(random.uniform(0.02, 0.1))  # the answer of a model
            cost = random.uniform(1.0, reservation.ceiling or 2.0)
            reservation.settle(cost)
        await ledger.put(entry(uuid.uuid4().hex, cost_usd=cost))

    async def calls() -> None:
        while True:
            await call()

    ended = await asyncio.gather(*(calls() for _ in range(10)), return_exceptions=True)
    assert {type(error) for error in ended} == {BudgetExceeded}, ended


if __name__ == "__main__":
    where, limit = sys.argv[1:]
    asyncio.run(spend(Ledger(where), Budget(float(limit))))
