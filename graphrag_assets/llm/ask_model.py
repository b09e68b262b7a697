"""One paid call to a model, from the ledger to litellm and back, in the order in which it is made.

`complete` looks in the ledger and joins an identical call in flight. `_answer` requests an answer, and a second one if
the first is not valid. `_request` finds a form that the server accepts, `paid` keeps to limits and budget. `_attempt`
sends one request, reads the reply and stores a valid answer. `stream` makes the same steps for an answer in pieces.

A request of indexing without a valid answer has a row in the ledger, too: after two runs it is given up, because a
model that has failed twice fails again, and is paid each time.
"""

import asyncio
import json
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit

from graphrag_assets.contracts.records import GIVEN_UP
from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.llm import provider, structured_output
from graphrag_assets.llm.ledger import Entry, Hit, Ledger, canonical, key_of
from graphrag_assets.llm.limits import Budget, Limits, Trace, with_retries
from graphrag_assets.llm.model_errors import (
    GivenUp,
    InvalidAnswer,
    RefusedAnswer,
    RequestRejected,
    RetriesExhausted,
)
from graphrag_assets.llm.model_options import (
    SAME_ANSWER,
    ChatRequest,
    Completion,
    Message,
    ModelOptions,
    Structured,
)
from graphrag_assets.llm.provider import Prices
from graphrag_assets.llm.structured_output import Answer
from graphrag_assets.llm.thoughts import AnswerReader
from graphrag_assets.runtime.tracing import span
from graphrag_assets.text.words import count_tokens

T = TypeVar("T")
Options = TypeVar("Options", bound=ModelOptions)
Send = Callable[[list[Message], dict[str, Any], Structured], Awaitable[T]]
"""Sends one request with these messages and parameters, which asks for JSON in this way."""
_RUNS = 2
"""A request that so many runs got no valid answer to is given up."""
_TOKENIZER_MARGIN = 1.25  # a provider may count more prompt tokens than o200k_base
_UNKNOWN_OUTPUT_TOKENS = 1000  # of a task without a limit that has not been answered yet


class ModelClient(Generic[Options]):
    """The client of one model; what its calls used is in `usage`."""

    operation: ClassVar[str]  # in OpenTelemetry's words

    def __init__(self, options: Options, ledger: Ledger, limits: Limits | None = None, budget: Budget | None = None):
        self.options: Options = options
        self.ledger = ledger
        self.limits = limits or Limits.of(options.model, options.base_url)
        self.budget = budget or Budget()
        self.usage = UsageMeter()
        self.vendor, self.model = provider.provider_of(options.model)
        self._known_prices: Prices | None = None

    async def prices(self) -> Prices:
        """Return the model's prices; the first call imports litellm, in a thread so that the event loop goes on."""
        if self._known_prices is None:
            await asyncio.to_thread(provider.litellm)
            self._known_prices = Prices.of(self.options.model, self.options.prices)
        return self._known_prices

    async def paid(
        self,
        trace: Trace,
        what: str,
        send: Callable[[], Awaitable[T]],
        tokens: Callable[[], tuple[int, int]],
        n_suspicious: int | None = None,
    ) -> T:
        """Return what `send` returns, within limits and budget; `tokens`: of prompt and answer, are called if
        limited.
        """
        prices = await self.prices()

        def price() -> float:
            prompt, answer = tokens()
            return prices.cost(round(prompt * _TOKENIZER_MARGIN), answer)

        async with self.limits.slot() as waited:
            trace.seconds_waiting += waited
            if self.ledger.unstored:  # what is paid for next would be lost, too
                await self.ledger.put()
            await self.budget.check(self.ledger, price, what)
            n_tokens = sum(tokens()) if self.limits.options.tokens_per_minute is not None else 0
            return await with_retries(send, self.options, self.limits, trace, what, n_tokens, n_suspicious)

    @asynccontextmanager
    async def counted(self, task: str, trace: Trace) -> AsyncIterator[None]:
        """Record in the usage, the failures in a row and a span, how a call ends; an unusable answer is a reply."""
        attributes: dict[str, str | int | float | bool] = {
            "gen_ai.operation.name": self.operation,
            "gen_ai.provider.name": self.vendor or "openai",
            "gen_ai.request.model": self.model,
            "graphrag.task": task,
        }
        if host := urlsplit(self.options.base_url or "").hostname:
            attributes["server.address"] = host
        # Not the current one: a stream leaves the block in between.
        with span(f"{self.operation} {self.model}", attributes, current=False, client=True) as annotate:
            try:
                yield
            except Exception as error:
                self.usage.add(task, replace(trace.usage, failures=1))
                if isinstance(error, RetriesExhausted):
                    self.limits.failed(str(error))
                elif isinstance(error, InvalidAnswer | RequestRejected):
                    self.limits.succeeded()
                raise
            except asyncio.CancelledError as error:
                error.__cause__ = trace.last_error
                raise
            else:
                self.limits.succeeded()
                if trace.requests:
                    self.usage.add(task, trace.usage)
            finally:
                annotate(
                    {
                        "gen_ai.usage.input_tokens": trace.paid.prompt_tokens,
                        "gen_ai.usage.cache_read.input_tokens": trace.paid.cached_tokens,
                        "gen_ai.usage.output_tokens": trace.paid.completion_tokens,
                        "graphrag.cost_usd": trace.paid.cost_usd,
                        "graphrag.requests": trace.requests,
                        "graphrag.seconds_waiting": trace.seconds_waiting,
                    }
                )


class ChatModel(ModelClient[ModelOptions]):
    """A chat model. Answers in the ledger from before `cache_not_before` (ISO time, UTC) are paid for again."""

    operation = "chat"

    def __init__(
        self,
        options: ModelOptions,
        ledger: Ledger,
        limits: Limits | None = None,
        budget: Budget | None = None,
        cache_not_before: str | None = None,
    ):
        super().__init__(options, ledger, limits, budget)
        self._not_before = cache_not_before or ""
        self._settings: dict[str, Any] = json.loads(options.parameters)
        self.server = provider.server_of(options)
        self._answered: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))  # by task: answers, their tokens

    async def complete(self, request: ChatRequest) -> Completion:
        """Return the valid answer to a request. An identical request in flight is joined, not sent again.

        Raises:
            InvalidAnswer: not valid in two attempts (`TruncatedAnswer`, `EmptyAnswer`, `RefusedAnswer`), or in those of
                two runs (`GivenUp`).
            RetriesExhausted, RequestRejected, BudgetExceeded, CircuitOpen, LedgerError: there is no answer.
        """
        key = self.key(request)
        answer = self._valid(request, await self.ledger.get(key))
        if answer is None:
            if reason := await self.given_up(request):
                raise reason
            shared, first = await self.ledger.single_flight.share(key, partial(self._answer, key, request))
            free = replace(shared, from_ledger=True, usage=replace(shared.usage, cost_usd=0.0))
            answer = shared if first else free
        losses = Usage(dropped_records=answer.dropped_records, guessed_repairs=int(answer.guessed))
        self.usage.add(request.task, replace(losses, ledger_hits=int(answer.from_ledger)))
        return answer

    async def _answer(self, key: str, request: ChatRequest, trace: Trace) -> Completion:
        """Request an answer, and a second one if it is not valid; without a valid one, one that was repaired counts."""
        async with self.counted(request.task, trace):
            messages, send = list(request.messages), partial(self._attempt, key, request, trace)
            try:
                answer = first = await self._request(request, messages, trace, send)
                if first.problem:
                    await self._put_invalid(request, first.completion.usage, trace)
                    messages = structured_output.again(messages, first.completion.text, first.problem)
                    answer = await self._request(request, messages, trace, send)
            except RefusedAnswer as refusal:  # by a content filter, before the model
                raise await self._put_failure(request, key, refusal, Usage(), trace) from None
            if answer.problem:
                used = answer.completion.usage
                repaired = [one for one in (answer, first) if one.completion.doubtful]
                if not repaired:
                    error = structured_output.unusable(request, self.options.where, answer.problem)
                    raise await self._put_failure(request, key, error, used, trace)
                answer = repaired[0]
                outdated = self._valid(request, await self.ledger.get(key)) is None
                await self._put(request, key, answer.completion.text, used, trace.seconds, replace=outdated)
        return answer.completion if answer.completion.from_ledger else replace(answer.completion, usage=trace.paid)

    async def _request(self, request: ChatRequest, messages: list[Message], trace: Trace, send: Send[T]) -> T:
        """Return what `send` returns for one request, in the form that the server accepts."""
        await self.prices()  # imports litellm
        while True:
            mode, wanted = self.server.mode(), self._parameters(request)
            parameters = {name: value for name, value in wanted.items() if name not in self.server.refused}
            try:
                tokens = partial(self._expected, request, messages)
                return await self.paid(trace, request.name, partial(send, messages, parameters, mode), tokens)
            except RequestRejected as error:
                asks_for_json = request.response_model is not None
                if not self.server.learn(error, mode if asks_for_json else None, parameters):
                    raise

    async def _attempt(
        self,
        key: str,
        request: ChatRequest,
        trace: Trace,
        messages: list[Message],
        parameters: dict[str, Any],
        mode: Structured,
    ) -> Answer:
        """Send one request, unless the answer was stored meanwhile; it is stored before the slot is free."""
        hit = await self.ledger.get(key)
        if stored := self._valid(request, hit):
            return Answer(stored)
        if request.parts and all([await self.stored_answer(part) for part in request.parts]):
            return Answer(Completion("", from_ledger=True))
        messages, form = structured_output.with_schema(messages, request.response_model, mode)
        began, where = time.monotonic(), provider.address(self.options)
        async with trace.request(self.options.timeout):
            response = await provider.litellm().acompletion(messages=messages, **where, **parameters, **form)
        reply = provider.read_reply(response)
        usage = await self._paid_for(request, reply, messages, trace)
        answer = structured_output.read_answer(reply, request, usage)
        if answer.problem is None:
            await self._put(request, key, reply.text, usage, time.monotonic() - began, replace=hit is not None)
        return answer

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        """Yield the answer in pieces as they arrive, then whole and stored; from the ledger it is one piece.

        Only failures before the first piece are retried; what turns out truncated or refused raises after the last.
        """
        if (stored := await self.stored_answer(request)) and stored.text:
            yield stored.text
            yield await self.complete(request)
            return
        trace, text, reply, ended, messages = Trace(), list[str](), provider.Reply(), False, list(request.messages)

        async def start(_: list[Message], parameters: dict[str, Any], __: Structured) -> tuple[Any, provider.Chunks]:
            async with trace.request(self.options.timeout):
                where = {**provider.address(self.options), **provider.STREAMED}
                chunks = await provider.litellm().acompletion(messages=messages, **where, **parameters)
                return await anext(chunks), chunks

        async with self.counted(request.task, trace):
            first, chunks = await self._request(request, messages, trace, start)
            try:
                reader = AnswerReader(holds_back=self.server.lacks_opening_tag)
                async for piece, reply in provider.pieces(first, chunks, self.options.timeout, reader):  # noqa: B007
                    if time.monotonic() - trace.began > self.limits.options.deadline_seconds:
                        raise TimeoutError("The answer does not end.")
                    text.append(piece)
                    if piece:
                        yield piece
                ended = True
            except Exception as error:
                said = provider.failure(error).message
                reason = f"{request.name}: the answer was interrupted. {said} Run the query again."
                raise RetriesExhausted(reason) from None
            finally:
                reply = replace(reply, text=reply.text or "".join(text))
                usage = await self._paid_for(request, reply, messages, trace)
                problem = structured_output.ending_of(reply)
                if problem or not ended:  # what it cost is recorded, whatever has ended it
                    await self._put_invalid(request, usage, trace)
            if problem:
                raise problem
            await self._put(request, self.key(request), reply.text, usage, trace.seconds)
        yield Completion(reply.text, usage=trace.paid)

    async def stored_answer(self, request: ChatRequest) -> Completion | None:
        """Return the answer from the ledger, or None; nothing is sent."""
        return self._valid(request, await self.ledger.get(self.key(request)))

    async def given_up(self, request: ChatRequest) -> GivenUp | None:
        """Why a request of indexing is not sent again, because two runs got no valid answer; None if it may be."""
        failures = await self._failures(self.key(request)) if request.run_id else []
        return GivenUp(failures[-1].response or "") if len(failures) == _RUNS else None

    def key(self, request: ChatRequest) -> str:
        """Return the ledger's key: everything that determines the answer; neither address nor API key nor run."""
        schema = structured_output.schema_text(request.response_model) if request.response_model else None
        answering = {name: value for name, value in self._parameters(request).items() if name not in SAME_ANSWER}
        return key_of("chat", request.task, self.vendor, self.model, answering, request.messages, schema)

    def _parameters(self, request: ChatRequest) -> dict[str, Any]:
        """Return the parameters of a request, by litellm's names: those of the settings replace its own."""
        together = {"temperature": request.temperature, **self._settings}
        return {name: value for name, value in together.items() if value is not None}

    def _expected(self, request: ChatRequest, messages: Sequence[Message]) -> tuple[int, int]:
        """Prompt tokens, counted, and completion tokens: the task's mean so far, else its limit."""
        answers, tokens = self._answered[request.task]
        limit = self._parameters(request).get("max_tokens")
        output = tokens / answers if answers else limit or _UNKNOWN_OUTPUT_TOKENS
        return provider.n_tokens_of(messages) + 4 * len(messages), round(min(output, limit) if limit else output)

    async def _paid_for(
        self, request: ChatRequest, reply: provider.Reply, messages: Sequence[Message], trace: Trace
    ) -> Usage:
        """Tokens and cost of a reply, which are charged. Tokens that the server does not say are counted here."""
        self.server.observe(reply, messages)
        prices = await self.prices()
        sent, received, cached = reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens
        if sent is None or received is None:
            sent, received = self._expected(request, request.messages)[0], sum(count_tokens([reply.text]))
            cached = 0
        answers, tokens = self._answered[request.task]
        self._answered[request.task] = (answers + 1, tokens + received)
        cost = prices.cost(sent, received, cached)
        usage = Usage(prompt_tokens=sent, cached_tokens=cached, completion_tokens=received, cost_usd=cost)
        self.budget.spend(cost)
        trace.paid += usage
        return usage

    def _valid(self, request: ChatRequest, hit: Hit | None) -> Completion | None:
        """Return stored answer, unless it is too old or not valid for the response model, which may have changed."""
        if hit is None or hit.created_at < self._not_before:
            return None
        usage = Usage(prompt_tokens=hit.prompt_tokens, completion_tokens=hit.completion_tokens)
        try:
            return replace(structured_output.completion(hit.response or "", request, usage), from_ledger=True)
        except InvalidAnswer:
            return None

    async def _put(
        self, request: ChatRequest, key: str, text: str, usage: Usage, seconds: float, replace: bool = False
    ) -> None:
        """Store a valid answer; that of a request with parts as the answers of its parts, with equal shares."""
        if request.split is None or request.response_model is None:
            await self.ledger.put(self._entry(key, "chat", request, text, usage, seconds), replace=replace)
        elif answers := request.split(structured_output.parse(text, request.response_model).parsed):
            entries, n = list[Entry](), len(answers)
            for i, (place, answer) in enumerate(answers.items()):
                part, share, text = request.parts[place], _share(usage, i, n), answer.model_dump_json()
                entries.append(self._entry(self.key(part), "chat", part, text, share, seconds / n))
            # Replaced: what another process may have stored meanwhile was paid for, too.
            await self.ledger.put(*entries, replace=True)
        else:
            await self.ledger.put(self._entry(uuid.uuid4().hex, "invalid", request, None, usage, seconds))

    async def _put_invalid(self, request: ChatRequest, usage: Usage, trace: Trace) -> None:
        """Record what an answer without use has cost."""
        await self.ledger.put(self._entry(uuid.uuid4().hex, "invalid", request, None, usage, trace.seconds))

    async def _put_failure(
        self, request: ChatRequest, key: str, error: InvalidAnswer, usage: Usage, trace: Trace
    ) -> InvalidAnswer:
        """Record that a run got no valid answer, and what the last one has cost; returns the error to raise."""
        if not request.run_id:  # of a question, which its user may ask again
            await self._put_invalid(request, usage, trace)
            return error
        number = min(len(await self._failures(key)), _RUNS - 1)
        if number == _RUNS - 1:
            error = GivenUp(f"{error} {GIVEN_UP}")
        entry = self._entry(key_of("failure", key, number), "invalid", request, str(error), usage, trace.seconds)
        await self.ledger.put(entry, replace=True)
        return error

    async def _failures(self, key: str) -> list[Hit]:
        hits = await self.ledger.get_many([key_of("failure", key, number) for number in range(_RUNS)])
        return [hit for hit in hits.values() if hit.created_at >= self._not_before]

    def _entry(
        self, key: str, kind: str, request: ChatRequest, response: str | None, usage: Usage, seconds: float
    ) -> Entry:
        return Entry(
            *(key, kind, request.task, self.vendor, self.model, canonical(self._parameters(request)), response, None),
            *(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.cost_usd, seconds),
            *(request.batch, request.unit, request.run_id),
        )


def _share(usage: Usage, i: int, n: int) -> Usage:
    """Return the i-th of n shares of tokens and cost; the sum of all shares is the whole."""

    def part(amount: int) -> int:
        return amount * (i + 1) // n - amount * i // n

    prompt, cached, completion = map(part, (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens))
    return Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion, cost_usd=usage.cost_usd / n)
