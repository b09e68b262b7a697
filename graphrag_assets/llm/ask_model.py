"""One paid call to a model, from the ledger to litellm and back, in the order in which it is made.

`complete` looks in the ledger and joins an identical call in flight. `_answer` requests an answer, and a second one if
the first is not valid. `_request` finds a form that the server accepts, `paid` keeps to limits and budget. `_attempt`
sends one request, reads the reply and stores a valid answer. `stream` makes the same steps for an answer in pieces.

A request of indexing without a valid answer has a row in the ledger, too, whose key follows from the request's: after
two runs it is given up, because a model that has failed twice fails again, and is paid each time.
"""

import asyncio
import json
import logging
import re
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar
from urllib.parse import urlsplit

from graphrag_assets.contracts.records import GIVEN_UP
from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.llm import provider, structured_output
from graphrag_assets.llm.ledger import Entry, Hit, Ledger, canonical, key_of
from graphrag_assets.llm.limits import REJECTS, Budget, Limits, Trace, with_retries
from graphrag_assets.llm.model_errors import (
    GivenUp,
    InvalidAnswer,
    RefusedAnswer,
    RequestRejected,
    RetriesExhausted,
    StoredInParts,
)
from graphrag_assets.llm.model_options import (
    SAME_ANSWER,
    ChatOptions,
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
_log = logging.getLogger(__name__)
_RUNS = 2
"""A request that so many runs got no valid answer to is given up."""
_TOKENIZER_MARGIN = 1.25  # a provider may count more prompt tokens than o200k_base
_UNKNOWN_OUTPUT_TOKENS = 1000  # of a task without a limit that has not been answered yet
_SHORT_PROMPT, _BYTES_PER_TOKEN = 4_000, 5
"""Bytes of prompts that are not looked at: all of short ones, and what a token usually has at most."""
_TIMES_THE_PRICE = 10
"""A cost above this many times the price of the tokens comes from details of the usage that cannot be."""
_VENDORS = {
    "": "openai",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""What OpenTelemetry's conventions call a provider, where it is not litellm's name."""


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
        self.vendor, self.model = provider.provider_of(options.model)
        self._place = options.model, options.base_url
        self._known_prices: Prices | None = None

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

    async def paid(
        self,
        trace: Trace,
        what: str,
        send: Callable[[], Awaitable[T]],
        tokens: Callable[[], tuple[int, int]],
        queries: int = 0,
        n_suspicious: int | None = None,
    ) -> T:
        """What `send` returns, within the limits and the budget; transient failures are repeated.

        `tokens` returns the prompt and answer tokens that are expected. It is called if they are limited.

        Raises:
            CircuitOpen: calls to the model are suspended.
            LedgerError: the ledger cannot store answers. What the end of the process can lose then are those in flight.
            BudgetExceeded: less than the expected cost is left.
            RetriesExhausted, RequestRejected, RefusedAnswer: see `with_retries`.
        """
        prices = await self.prices()

        def price() -> float:
            prompt, answer = tokens()
            return prices.cost(round(prompt * _TOKENIZER_MARGIN), answer, queries=queries)

        async with self.limits.slot() as waited:
            trace.seconds_waiting += waited
            await self.ledger.catch_up()
            await self.budget.check(self.ledger, price, what)
            n_tokens = sum(tokens()) if self.limits.options.tokens_per_minute is not None else 0
            return await with_retries(send, self.options, self.limits, trace, what, n_tokens, n_suspicious)

    def pay(self, trace: Trace, usage: Usage) -> None:
        """Count what a reply has cost."""
        self.budget.spend(usage.cost_usd)
        trace.paid += usage

    @asynccontextmanager
    async def counted(self, task: str, trace: Trace) -> AsyncIterator[None]:
        """Record in the usage, and in the failures in a row, how a call ends.

        Only failures of the server count: an invalid answer and a rejected request are replies. The call is a span, by
        OpenTelemetry's conventions for generative AI, which is not current: a stream leaves the block in between.
        """
        attributes: dict[str, str | int | float | bool] = {
            "gen_ai.operation.name": self.operation,
            "gen_ai.provider.name": _VENDORS.get(self.vendor, self.vendor),
            "gen_ai.request.model": self.model,
            "graphrag.task": task,
        }
        if host := urlsplit(self.options.base_url or "").hostname:
            attributes["server.address"] = host
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


@dataclass
class _Server:
    """What a process has learned about a model's server.

    Attributes:
        mode: how it is asked for JSON.
        refused: parameters that it refuses, which are left out.
        cuts_prompts: it counts less than half of the tokens of a long prompt.
        lacks_opening_tag: its thoughts begin without a tag, so nothing is shown before they end.
    """

    mode: Structured | None = None
    refused: set[str] = field(default_factory=set)
    cuts_prompts: bool = False
    lacks_opening_tag: bool = False


_servers: dict[tuple[str, str | None], _Server] = defaultdict(_Server)


async def _no_check(_: ChatRequest) -> None:
    """No check before a request is paid for."""


class ChatModel(ModelClient[ChatOptions]):
    """A chat model; see `ModelClient`.

    `cache_not_before` (ISO time, UTC): older answers in the ledger are requested, and paid for, again.
    """

    operation = "chat"

    def __init__(
        self,
        options: ChatOptions,
        ledger: Ledger,
        limits: Limits | None = None,
        budget: Budget | None = None,
        cache_not_before: str | None = None,
    ):
        super().__init__(options, ledger, limits, budget)
        # Awaited where the ledger has no answer.
        self.before_paying: Callable[[ChatRequest], Awaitable[None]] = _no_check
        self._not_before = cache_not_before or ""
        self._settings: dict[str, Any] = json.loads(options.parameters)
        self._server = _servers[self._place]
        self._answered: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))  # by task: answers, their tokens

    async def complete(self, request: ChatRequest) -> Completion:
        """The valid answer to a request. An identical request in flight is joined, not sent again.

        Raises:
            InvalidAnswer: not valid in two attempts (`TruncatedAnswer`, `EmptyAnswer`, `RefusedAnswer`), or in those of
                two runs (`GivenUp`).
            RetriesExhausted, RequestRejected, BudgetExceeded, CircuitOpen, LedgerError: there is no answer.
            StoredInParts: all parts of the request were answered since the caller looked for them in the ledger.
        """
        key = self.key(request)
        stored = self._valid(request, await self.ledger.get(key))
        if stored is None:
            if request.run_id and (reason := await self.given_up(request)):
                raise reason
            answer, first = await self.ledger.single_flight.share(key, partial(self._answer, key, request))
            if first and not answer.from_ledger:
                self._count(request, answer)
                return answer
            stored = replace(answer, from_ledger=True, usage=replace(answer.usage, cost_usd=0.0))
        self._count(request, stored)
        return stored

    async def _answer(self, key: str, request: ChatRequest, trace: Trace) -> Completion:
        """Request an answer, and a second one if it is not valid."""
        if request.parts and all([await self.known(part) for part in request.parts]):
            raise StoredInParts(request.name)
        async with self.counted(request.task, trace):
            await self.before_paying(request)
            messages, send = list(request.messages), partial(self._attempt, key, request, trace)
            try:
                answer = await self._request(request, messages, trace, send)
            except RefusedAnswer as refusal:  # by a content filter, before the model
                raise await self._put_failure(request, key, refusal, Usage(), trace.seconds) from None
            if answer.problem:
                await self._put_invalid(request, answer.completion.usage, trace.seconds)
                messages = structured_output.again(messages, answer.completion.text, answer.problem)
                first, answer = answer, await self._request(request, messages, trace, send)
                if answer.problem:
                    answer = await self._better(key, request, first, answer, trace.seconds)
        return answer.completion if answer.completion.from_ledger else replace(answer.completion, usage=trace.paid)

    async def _request(self, request: ChatRequest, messages: list[Message], trace: Trace, send: Send[T]) -> T:
        """What `send` returns for one request, in the form that the server accepts."""
        await self.prices()  # imports litellm
        while True:
            mode, parameters = self.structured_mode, self._accepted(request)
            try:
                tokens = partial(self._expected, request, messages)
                return await self.paid(trace, request.name, partial(send, messages, parameters, mode), tokens)
            except RequestRejected as error:
                if not (self._weaken(request, mode, error) or self._drop_named(parameters, error)):
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
        """Send one request, unless another process has stored the answer meanwhile.

        A valid answer is stored before the slot is free: a killed process loses at most its in-flight answers.
        """
        hit = await self.ledger.get(key)
        if stored := self._valid(request, hit):
            return Answer(stored)
        if wanted := structured_output.response_format(request.response_model, mode):
            parameters = {**parameters, "response_format": wanted}
        messages = structured_output.with_schema(messages, request.response_model, mode)
        began = time.monotonic()
        async with trace.request(self.options.timeout):
            where = provider.address(self.options)
            response = await provider.litellm().acompletion(messages=messages, **where, **parameters)
        reply = provider.read_reply(response, self.options.model)
        usage = await self._usage_of(request, reply, messages)
        self.pay(trace, usage)
        answer = structured_output.read_answer(reply, request, usage)
        if answer.problem is None:
            await self._put(request, key, reply.text, usage, time.monotonic() - began, replace=hit is not None)
        return answer

    async def _better(self, key: str, request: ChatRequest, first: Answer, second: Answer, seconds: float) -> Answer:
        """Store and return the better of two repaired answers: the one with more records, on a tie the second.

        Raises:
            InvalidAnswer: neither is a guess.
        """
        best, usage = structured_output.best_guess([first, second]), second.completion.usage
        if best is None:
            error = structured_output.unusable(request, self.options.where, second.problem or InvalidAnswer())
            raise await self._put_failure(request, key, error, usage, seconds)
        outdated = self._valid(request, await self.ledger.get(key)) is None
        await self._put(request, key, best.completion.text, usage, seconds, replace=outdated)
        return best

    async def stream(self, request: ChatRequest) -> AsyncIterator[str]:
        """The answer in pieces as they arrive, stored when it is complete; from the ledger it is one piece.

        Failures before the first piece are retried. Raises as `complete` does, and `RetriesExhausted` when the
        answer breaks off; an answer that turns out truncated or refused raises after its last piece.
        """
        if (stored := await self.known(request)) and stored.text:
            self._count(request, stored)
            yield stored.text
            return
        trace, text, reply, ended = Trace(), list[str](), provider.Reply(), False
        async with self.counted(request.task, trace):
            await self.before_paying(request)
            messages = list(request.messages)
            first, chunks = await self._request(request, messages, trace, partial(self._open, trace))
            try:
                reader = AnswerReader(holds_back=self._server.lacks_opening_tag)
                async for piece, reply in provider.pieces(first, chunks, self.options.timeout, reader):  # noqa: B007
                    if time.monotonic() - trace.began > self.limits.options.deadline_seconds:
                        raise TimeoutError("The answer does not end.")
                    text.append(piece)
                    if piece:
                        yield piece
                ended = True
            except Exception as error:
                message = provider.failure(error).message
                raise RetriesExhausted(
                    f"{request.name}: the answer was interrupted. {message} Run the query again."
                ) from None
            finally:
                reply = replace(reply, text=reply.text or "".join(text))
                usage = await self._usage_of(request, reply, messages)
                self.pay(trace, usage)
                problem = structured_output.ending_of(reply)
                if problem or not ended:  # what it cost is recorded, whatever has ended it
                    await self._put_invalid(request, usage, trace.seconds)
            if problem:
                raise problem
            await self._put(request, self.key(request), reply.text, usage, trace.seconds)

    async def _open(
        self, trace: Trace, messages: list[Message], parameters: dict[str, Any], _: Structured
    ) -> tuple[Any, provider.Chunks]:
        """Send a streamed request: its first chunk, and the rest."""
        async with trace.request(self.options.timeout):
            where = provider.address(self.options)
            chunks = await provider.litellm().acompletion(messages=messages, **where, **parameters, **provider.STREAMED)
            return await anext(chunks), chunks

    async def known(self, request: ChatRequest) -> Completion | None:
        """The answer from the ledger, or None; nothing is sent."""
        return self._valid(request, await self.ledger.get(self.key(request)))

    def key(self, request: ChatRequest) -> str:
        """The ledger's key: everything that determines the answer; neither address nor API key nor run."""
        schema = structured_output.schema_text(request.response_model) if request.response_model else None
        answering = {name: value for name, value in self._parameters(request).items() if name not in SAME_ANSWER}
        return key_of("chat", request.task, self.vendor, self.model, answering, request.messages, schema)

    def _count(self, request: ChatRequest, completion: Completion) -> None:
        """Count the losses of an answer, and whether it came from the ledger."""
        losses = Usage(dropped_records=completion.dropped_records, guessed_repairs=int(completion.guessed))
        self.usage.add(request.task, replace(losses, ledger_hits=int(completion.from_ledger)))

    # What a request carries

    def _parameters(self, request: ChatRequest) -> dict[str, Any]:
        """The parameters of a request, by litellm's names: those of the settings replace its own."""
        limit = {} if request.max_tokens is None else {"max_tokens": request.max_tokens}
        together = {"temperature": request.temperature, **limit, **self._settings}
        return {name: value for name, value in together.items() if value is not None}

    def _accepted(self, request: ChatRequest) -> dict[str, Any]:
        """The parameters of a request without those that the model refuses; warns of these once."""
        unsupported = provider.unsupported(self.options.model, self.options.parameters)
        if not self._server.refused.issuperset(unsupported):
            self._drop(unsupported, "litellm knows that it is not supported.")
        return {name: value for name, value in self._parameters(request).items() if name not in self._server.refused}

    @property
    def structured_mode(self) -> Structured:
        """How JSON is requested from the model, as far as is known."""
        if self._server.mode is None:
            self._server.mode = provider.structured_mode(self.options)
        return self._server.mode

    @property
    def cuts_prompts(self) -> bool:
        """Whether the server is known to have cut a prompt."""
        return self._server.cuts_prompts

    def _weaken(self, request: ChatRequest, rejected: Structured, error: RequestRejected) -> bool:
        """Ask for JSON in a weaker way from now on, if the server rejects this one."""
        about_format = any(word in str(error).lower() for word in ("response_format", "json", "schema", "grammar"))
        if request.response_model is None or rejected not in structured_output.WEAKER or not about_format:
            return False
        if self._server.mode == rejected:  # else another call has done so
            self._server.mode = structured_output.WEAKER[rejected]
        return True

    def _drop_named(self, sent: Iterable[str], error: RequestRejected) -> bool:
        """Leave out the parameters that a rejection names from now on."""
        said = str(error).partition(REJECTS)[2]  # without the names of task, text unit and batch
        names = [name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said)]
        self._drop(names, said)
        return bool(names)

    def _drop(self, names: Sequence[str], reason: str) -> None:
        if new := [name for name in names if name not in self._server.refused]:
            self._server.refused.update(new)
            _log.warning("%s refuses %s, so it is left out: %s", self.options.where, ", ".join(new), reason)

    # Tokens and cost

    def _expected(self, request: ChatRequest, messages: Sequence[Message]) -> tuple[int, int]:
        """Prompt tokens, counted, and completion tokens: the task's mean so far, else its limit."""
        answers, tokens = self._answered[request.task]
        limit = self._parameters(request).get("max_tokens")
        output = tokens / answers if answers else limit or _UNKNOWN_OUTPUT_TOKENS
        return _n_tokens(messages) + 4 * len(messages), round(min(output, limit) if limit else output)

    async def _usage_of(self, request: ChatRequest, reply: provider.Reply, messages: Sequence[Message]) -> Usage:
        """Tokens and cost of a reply. Tokens that the server does not say are counted here."""
        self._learn_from(reply, messages)
        prices = await self.prices()
        sent, received, cached, cost_usd = (
            reply.prompt_tokens,
            reply.completion_tokens,
            reply.cached_tokens,
            reply.cost_usd,
        )
        if sent is None or received is None:
            sent, received = self._expected(request, request.messages)[0], sum(count_tokens([reply.text]))
            cost_usd, cached = None, 0
        answers, tokens = self._answered[request.task]
        self._answered[request.task] = (answers + 1, tokens + received)
        cost = prices.cost(sent, received, cached)
        if prices.source == "litellm" and cost_usd is not None and 0 <= cost_usd <= _TIMES_THE_PRICE * cost:
            cost = cost_usd  # includes the prices of tiered tokens, and of tokens written to a cache
        return Usage(prompt_tokens=sent, cached_tokens=cached, completion_tokens=received, cost_usd=cost)

    def _learn_from(self, reply: provider.Reply, messages: Sequence[Message]) -> None:
        """Warn of a prompt that was cut, and of thoughts without their opening tag, whose answers are shown whole."""
        size, counted = sum(len(message["content"].encode()) for message in messages), reply.prompt_tokens
        is_long = counted is not None and size >= max(_SHORT_PROMPT, counted * _BYTES_PER_TOKEN)
        if counted is not None and is_long and not self.cuts_prompts and counted < (n_sent := _n_tokens(messages)) / 2:
            self._server.cuts_prompts = True  # tokenizers differ by less
            _log.warning(
                "%s counted %d tokens of a prompt of about %d: it seems to cut prompts, so the model does not read all "
                "of them. Raise its context: for Ollama num_ctx in GRAPHRAG_MODEL_PARAMETERS (models ollama_chat/…) or "
                "OLLAMA_CONTEXT_LENGTH in the environment of its server.",
                self.options.where,
                counted,
                n_sent,
            )
        if reply.lacked_opening_tag and not self._server.lacks_opening_tag:
            self._server.lacks_opening_tag = True
            _log.warning(
                "%s sends thoughts without their opening tag, so its answers are not streamed. Start its server with a "
                "reasoning parser (vLLM: --reasoning-parser, llama.cpp: --reasoning-format).",
                self.options.where,
            )

    # Rows of the ledger

    def _valid(self, request: ChatRequest, hit: Hit | None) -> Completion | None:
        """The stored answer, unless it is too old or not valid for the response model, which may have changed."""
        if hit is None or hit.created_at < self._not_before:
            return None
        text = hit.response or ""
        usage = Usage(prompt_tokens=hit.prompt_tokens, completion_tokens=hit.completion_tokens)
        if request.response_model is None:
            return Completion(text, usage=usage, from_ledger=True)
        try:
            parsed = structured_output.parse(text, request.response_model, request.may_say_nothing)
        except InvalidAnswer:
            return None
        return replace(structured_output.completion_of(text, parsed, usage), from_ledger=True)

    async def _put(
        self, request: ChatRequest, key: str, text: str, usage: Usage, seconds: float, replace: bool = False
    ) -> None:
        """Store a valid answer; that of a request with parts as the answers of its parts."""
        if not request.parts:
            await self.ledger.put(self._entry(key, "chat", request, text, usage, seconds), replace=replace)
        elif entries := self._entries_of_parts(request, text, usage, seconds):
            # Replaced: what another process may have stored meanwhile was paid for, too.
            await self.ledger.put(*entries, replace=True)
        else:
            await self._put_invalid(request, usage, seconds)

    async def _put_invalid(self, request: ChatRequest, usage: Usage, seconds: float) -> None:
        """Record what an answer without use has cost."""
        await self.ledger.put(self._entry(uuid.uuid4().hex, "invalid", request, None, usage, seconds))

    async def given_up(self, request: ChatRequest) -> GivenUp | None:
        """Why a request of indexing is not sent again, because two runs got no valid answer; None if it may be."""
        failures = await self._failures(self.key(request))
        return GivenUp(failures[-1].response or "") if len(failures) == _RUNS else None

    async def _put_failure(
        self, request: ChatRequest, key: str, error: InvalidAnswer, usage: Usage, seconds: float
    ) -> InvalidAnswer:
        """Record that a run got no valid answer, and what the last one has cost; returns the error to raise."""
        if not request.run_id:  # of a question, which its user may ask again
            await self._put_invalid(request, usage, seconds)
            return error
        number = min(len(await self._failures(key)), _RUNS - 1)
        if number == _RUNS - 1:
            error = GivenUp(f"{error} {GIVEN_UP}")
        entry = self._entry(_failure_key(key, number), "invalid", request, str(error), usage, seconds)
        await self.ledger.put(entry, replace=True)
        return error

    async def _failures(self, key: str) -> list[Hit]:
        hits = await self.ledger.get_many([_failure_key(key, number) for number in range(_RUNS)])
        return [hit for hit in hits.values() if hit.created_at >= self._not_before]

    def _entries_of_parts(self, request: ChatRequest, text: str, usage: Usage, seconds: float) -> list[Entry]:
        """An entry for each part that is answered, with its share, by length, of tokens, cost and time."""
        if request.response_model is None or request.split is None:
            raise TypeError("A request with parts needs a response model and a function that splits its answer.")
        answers = request.split(structured_output.parse(text, request.response_model).value)
        lengths = [
            len(answer) + sum(len(message["content"]) for message in request.parts[place].messages)
            for place, answer in answers.items()
        ]
        entries, end = list[Entry](), 0.0
        for (place, answer), length in zip(answers.items(), lengths, strict=True):
            start, end = end, end + length / sum(lengths)
            part, share = request.parts[place], _share(usage, start, end)
            entries.append(self._entry(self.key(part), "chat", part, answer, share, seconds * (end - start)))
        return entries

    def _entry(
        self, key: str, kind: str, request: ChatRequest, response: str | None, usage: Usage, seconds: float
    ) -> Entry:
        return Entry(
            key=key,
            kind=kind,
            task=request.task,
            provider=self.vendor,
            model=self.model,
            parameters=canonical(self._parameters(request)),
            response=response,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            cost_usd=usage.cost_usd,
            seconds=seconds,
            batch=request.batch,
            unit=request.unit,
            run_id=request.run_id,
        )


def _failure_key(key: str, number: int) -> str:
    """The ledger's key of the row for the failure of this number, from 0, of a request."""
    return key_of("failure", key, number)


def _share(usage: Usage, start: float, end: float) -> Usage:
    """The share of tokens and cost from one fraction to another; the sum of all shares is the whole."""

    def between(amount: int) -> int:
        return round(amount * end) - round(amount * start)

    return Usage(
        prompt_tokens=between(usage.prompt_tokens),
        cached_tokens=between(usage.cached_tokens),
        completion_tokens=between(usage.completion_tokens),
        cost_usd=usage.cost_usd * (end - start),
    )


def _n_tokens(messages: Sequence[Message]) -> int:
    return sum(count_tokens(message["content"] for message in messages))
