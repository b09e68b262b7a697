"""What the clients of chat, embedding and reranking models share: prices, budget, usage."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import ClassVar, Generic, Self, TypeVar

from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.llm import provider
from graphrag_assets.llm.budget import Budget
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_errors import InvalidAnswer, RequestRejected, RetriesExhausted
from graphrag_assets.llm.model_options import ModelOptions
from graphrag_assets.llm.model_spans import model_span
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.rate_limits import Limits
from graphrag_assets.llm.single_flight import Trace

Options = TypeVar("Options", bound=ModelOptions)
TOKENIZER_MARGIN = 1.25  # a provider may count more prompt tokens than o200k_base


class ModelClient(Generic[Options]):
    """The client of one model; what its calls used is in `usage`.

    As an asynchronous context manager, or by `await close()`, it finishes and stores the in-flight calls. `operation`:
    what it does, in OpenTelemetry's words.
    """

    operation: ClassVar[str]

    def __init__(self, options: Options, ledger: Ledger, limits: Limits | None = None, budget: Budget | None = None):
        self.options: Options = options
        self.ledger = ledger
        self.limits = limits or Limits.of(options.model, options.base_url)
        self.budget = budget or Budget()
        self.usage = UsageMeter()
        self._known_prices: Prices | None = None

    @property
    def _place(self) -> tuple[str, str | None]:
        return self.options.model, self.options.base_url

    async def close(self) -> None:
        """Let the in-flight calls finish, and close the connections, which litellm shares among models."""
        await self.ledger.single_flight.drain()
        await provider.close_clients()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def prices(self) -> Prices:
        """The model's prices; the first call imports litellm, in a thread so that the event loop goes on."""
        if self._known_prices is None:
            await asyncio.to_thread(provider.litellm)
            self._known_prices = Prices.of(self.options.model, self.options.prices)
        return self._known_prices

    @asynccontextmanager
    async def _slot(self, trace: Trace) -> AsyncIterator[None]:
        """One of the places for concurrent calls, once all answers paid for so far are stored.

        So what a full disk, or the end of the process, can lose are the answers in flight at its first failure.

        Raises:
            CircuitOpen: the circuit breaker has suspended calls to the model.
            LedgerError: the ledger cannot store answers.
        """
        async with self.limits.slot() as waited:
            trace.seconds_waiting += waited
            await self.ledger.catch_up()
            yield

    async def _check_budget(
        self, prices: Prices, tokens: Callable[[], tuple[int, int]], what: str, queries: int = 0
    ) -> None:
        """Check that the budget covers a request that is expected to use so many prompt and answer tokens.

        Raises:
            BudgetExceeded: less than the expected cost is left.
        """

        def price() -> float:
            prompt, answer = tokens()
            return prices.cost(round(prompt * TOKENIZER_MARGIN), answer, queries=queries)

        await self.budget.check(self.ledger, price, what)

    def _pay(self, trace: Trace, usage: Usage) -> None:
        self.budget.spend(usage.cost_usd)
        trace.paid += usage

    @asynccontextmanager
    async def _counting_failure(self, task: str, trace: Trace) -> AsyncIterator[None]:
        """Record an exception of a call in the usage and the circuit breaker.

        Only failures of the server count for the breaker. An invalid answer and a rejected request are replies. The
        call is a span.
        """
        try:
            with model_span(self.options, self.operation, task, trace):
                yield
        except Exception as error:
            self.usage.add(task, replace(trace.usage, failures=1))
            if isinstance(error, RetriesExhausted):
                self.limits.breaker.failed(str(error))
            elif isinstance(error, InvalidAnswer | RequestRejected):
                self.limits.breaker.succeeded()
            raise
        except asyncio.CancelledError as error:
            error.__cause__ = trace.last_error
            raise
