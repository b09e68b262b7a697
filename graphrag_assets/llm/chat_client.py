"""Chat: a question to a language model, answered by the ledger or by the provider; the answer is valid or an error."""

import asyncio
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, NamedTuple

from graphrag_assets.llm import provider, structured_output
from graphrag_assets.llm.budget import Budget, Reservation
from graphrag_assets.llm.ledger import Entry, Hit, Ledger, canonical, key_of
from graphrag_assets.llm.model_errors import (
    EmptyAnswer,
    InvalidAnswer,
    ModelError,
    RefusedAnswer,
    RequestRejected,
    RetriesExhausted,
    TruncatedAnswer,
)
from graphrag_assets.llm.model_options import ChatOptions, ChatRequest, Completion, Message, Structured, TokenUsage
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.rate_limits import Limits
from graphrag_assets.llm.retry import Target, call, send
from graphrag_assets.llm.single_flight import Trace
from graphrag_assets.llm.usage import Usage, UsageMeter, used
from graphrag_assets.text import count_tokens

_UNKNOWN_OUTPUT_TOKENS = 1000  # of a task that was not answered yet and has no limit
_ways: dict[tuple[str, str | None], Structured] = {}  # how each model takes a schema, learnt once per process


class _AnsweredElsewhereError(ModelError):
    """The ledger has got the answer while the call waited."""

    def __init__(self, completion: Completion):
        self.completion = completion


class _Answer(NamedTuple):
    """A reply, what was read from it, and why it should be asked for again, if it should."""

    text: str
    parsed: structured_output.Parsed[Any] | None
    problem: InvalidAnswer | None
    usage: TokenUsage


class ChatModel:
    """A chat model; what its calls used is in `usage`.

    `cache_not_before` (ISO time, UTC): answers in the ledger that are older are asked for, and paid for, again.

    As an asynchronous context manager, or by `await close()`, it finishes and stores the calls under way.
    """

    def __init__(
        self,
        options: ChatOptions,
        ledger: Ledger,
        limits: Limits | None = None,
        budget: Budget | None = None,
        cache_not_before: str | None = None,
    ):
        self.options = options
        self.ledger = ledger
        self._anew_since = cache_not_before
        self.limits = limits or Limits.of(options.model, options.base_url)
        self.budget = budget or Budget()
        self.usage = UsageMeter()
        self._target = Target(options.model, options.base_url, options.api_key, options.timeout, self.limits)
        self._output: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))  # task: answers, completion tokens
        self._prices: Prices | None = None

    async def complete(self, request: ChatRequest) -> Completion:
        """The valid answer to a request. An identical request under way is joined, not sent.

        Raises:
            InvalidAnswer: not valid even when asked again (`TruncatedAnswer`, `EmptyAnswer`, `RefusedAnswer`).
            RetriesExhausted, RequestRejected, BudgetExceeded, CircuitOpen, LedgerError: there is no answer.
        """
        key = self.key(request)
        completion, first = await self.ledger.flights.share(key, lambda trace: self._complete(key, request, trace))
        if first:
            return completion
        self.usage.add(request.task, Usage(ledger_hits=1))
        return replace(completion, from_ledger=True, usage=replace(completion.usage, cost_usd=0.0))

    async def known(self, request: ChatRequest) -> Completion | None:
        """The answer, if it is paid for already; nothing is sent."""
        hit = await self.ledger.get(self.key(request))
        return self._from_ledger(request, hit) if hit else None

    async def stream(self, request: ChatRequest) -> AsyncIterator[str]:
        """The answer in pieces as they come, stored when it is complete; from the ledger it is one piece.

        Failures before the first piece are retried. Raises as `complete` does, and `RetriesExhausted` when the
        answer breaks off; an answer that turns out truncated or refused raises after its last piece.
        """
        key, name, trace, began = self.key(request), _name(request), Trace(), time.monotonic()
        if (hit := await self.ledger.get(key)) and hit.response:
            self.usage.add(request.task, Usage(ledger_hits=1))
            yield hit.response
            return
        messages, text, reply = list(request.messages), [], provider.Reply("", "stop", None, 0, 0, None)

        async def attempt() -> tuple[Any, provider.Chunks, Reservation]:
            with self._reserved(request, messages) as reservation:
                asked = provider.open_stream(self.options, messages, self._parameters(request))
                first, chunks = await send(self._target, asked, trace)
                return first, chunks, reservation.moved()

        try:
            await self._load()
            expected = self._expected(request, messages)
            first, chunks, reservation = await call(self._target, attempt, trace, name, expected)
            try:
                async for piece, known in provider.pieces(first, chunks):
                    reply = known
                    text.append(piece)
                    if piece:
                        yield piece
            except Exception as error:
                said = provider.failure(error, self.options.api_key).message
                raise RetriesExhausted(f"{name}: the answer broke off. {said} Ask again.") from None
            finally:
                usage = self._settle(request, trace, reservation, reply)
            reply = replace(reply, text="".join(text))
            _check(reply)
            await self.ledger.put(self._entry(key, "chat", request, reply.text, usage, time.monotonic() - began))
        except Exception as error:
            self._failed(request, trace, error)
            raise
        self._succeeded(request, trace)

    def key(self, request: ChatRequest) -> str:
        """The ledger's key: all that determines the answer; neither address nor API key nor run are part of it."""
        schema = structured_output.schema_text(request.response_model) if request.response_model else None
        vendor, name = provider.provider_of(self.options.model)
        return key_of("chat", request.task, vendor, name, self._parameters(request), request.messages, schema)

    async def close(self) -> None:
        """Let the calls under way finish, and close the connections of this event loop."""
        await self.ledger.flights.land()
        await provider.close_clients()

    async def __aenter__(self) -> "ChatModel":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _complete(self, key: str, request: ChatRequest, trace: Trace) -> Completion:
        hit = await self.ledger.get(key)
        completion = self._from_ledger(request, hit) if hit else None
        if completion:
            self._hit(request, trace, completion)
            return completion
        try:
            completion = await self._ask(key, request, trace, stale=hit is not None)
        except _AnsweredElsewhereError as other:
            self._hit(request, trace, other.completion)
            return other.completion
        except Exception as error:
            self._failed(request, trace, error)
            raise
        self._succeeded(request, trace, completion.dropped_records)
        return completion

    def _from_ledger(self, request: ChatRequest, hit: Hit) -> Completion | None:
        """The stored answer, unless it is to be asked for anew, or the response model has become stricter than it."""
        if self._anew_since and hit.created_at < self._anew_since:
            return None
        text = hit.response or ""
        usage = TokenUsage(hit.prompt_tokens, hit.completion_tokens)
        if request.response_model is None:
            return Completion(text, usage=usage, from_ledger=True)
        try:
            parsed = structured_output.parse(text, request.response_model)
        except InvalidAnswer:
            return None
        return Completion(text, parsed.value, usage, from_ledger=True, dropped_records=parsed.dropped_records)

    async def _ask(self, key: str, request: ChatRequest, trace: Trace, stale: bool) -> Completion:
        """Ask the provider, once more if the answer is not valid; the answer is stored.

        Broken JSON whose repair is a guess is asked again too; the guess counts only if nothing better comes.
        """
        await self._load()
        messages, began = list(request.messages), time.monotonic()
        guesses: list[tuple[str, structured_output.Parsed[Any]]] = []
        for last in (False, True):
            text, parsed, problem, usage = await self._send(key, request, messages, trace, stale)
            seconds = time.monotonic() - began - trace.seconds_waiting
            if problem and parsed:
                guesses.append((text, parsed))
            if problem and last and guesses:
                text, parsed = max(reversed(guesses), key=lambda guess: guess[1].kept_records)
                problem = None
                await self.ledger.put(self._entry(key, "chat", request, text, usage, seconds), replace=stale)
            if problem is None:
                value, dropped = (parsed.value, parsed.dropped_records) if parsed else (None, 0)
                return Completion(
                    text, value, trace.paid, False, trace.retries, seconds, trace.seconds_waiting, dropped
                )
            await self.ledger.put(self._entry(uuid.uuid4().hex, "invalid", request, None, usage, seconds))
            if last:
                kind, where = type(problem), f"{_name(request)}: {self._target}"
                raise kind(f"{where} gave no usable answer, asked twice. {problem} {_cure(kind)}")
            said = "" if isinstance(problem, TruncatedAnswer) else text
            messages = structured_output.again(messages, said, problem)
        raise AssertionError("unreachable")

    async def _send(
        self, key: str, request: ChatRequest, messages: list[Message], trace: Trace, stale: bool
    ) -> _Answer:
        """One answer in the strongest way of asking for JSON that the server takes; a valid one is stored.

        It is stored before its slot is free: whoever is killed loses no more answers than he may have in flight.
        """
        while True:
            way = self._way()
            parameters = self._parameters(request)
            if wanted := structured_output.response_format(request.response_model, way):
                parameters["response_format"] = wanted
            sent = structured_output.with_schema(messages, request.response_model, way)
            expected = self._expected(request, sent)

            async def attempt() -> _Answer:
                await self._look_again(key, request)
                began = time.monotonic()
                with self._reserved(request, sent) as reservation:  # noqa: B023
                    asked = provider.send_chat(self.options, sent, parameters)  # noqa: B023
                    reply = await send(self._target, asked, trace)
                    usage = self._settle(request, trace, reservation, reply)
                answer = _Answer(reply.text, *_read(reply, request), usage)
                if answer.problem is None:
                    entry = self._entry(key, "chat", request, reply.text, usage, time.monotonic() - began)
                    await self.ledger.put(entry, replace=stale)
                return answer

            try:
                answer = await call(self._target, attempt, trace, _name(request), expected)
            except RequestRejected as error:
                if not wanted or not _about_format(error):
                    raise
                self._weaken(way)
                continue
            self.limits.used(expected, answer.usage.prompt_tokens + answer.usage.completion_tokens)
            return answer

    async def _look_again(self, key: str, request: ChatRequest) -> None:
        """Another process may have paid for this answer while the call waited for its turn or for imports."""
        hit = await self.ledger.get(key)
        if hit and (completion := self._from_ledger(request, hit)):
            raise _AnsweredElsewhereError(completion)

    def _reserved(self, request: ChatRequest, messages: list[Message]) -> Reservation:
        return self.budget.reserve(lambda: self._estimate(request, messages), _name(request))

    async def _load(self) -> Prices:
        """Import litellm, on the first call that is really sent, without stopping the event loop."""
        if self._prices is None:
            self._prices = await asyncio.to_thread(self._introduce)
        return self._prices

    def _introduce(self) -> Prices:
        prices = Prices.of(self.options.model, self.options.prices)
        provider.introduce(self.options.model, "chat")
        return prices

    def _way(self) -> Structured:
        place = (self.options.model, self.options.base_url)
        if place not in _ways:
            _ways[place] = provider.first_way(self.options)
        return _ways[place]

    def _weaken(self, refused: Structured) -> None:
        """The server does not take this way of asking: remember the next one, unless another call already has."""
        place = (self.options.model, self.options.base_url)
        if _ways[place] == refused:
            _ways[place] = structured_output.WEAKER[refused]

    def _parameters(self, request: ChatRequest) -> dict[str, Any]:
        options = self.options
        parameters = {
            "temperature": options.temperature if request.temperature is None else request.temperature,
            "max_tokens": options.max_tokens if request.max_tokens is None else request.max_tokens,
            "seed": options.seed,
            **options.extra,
        }
        return {name: value for name, value in parameters.items() if value is not None}

    def _expected(self, request: ChatRequest, messages: list[Message]) -> int:
        """Tokens that a call is expected to use, where a limit needs to know."""
        return sum(self._guess(request, messages)) if self.limits.counts_tokens else 0

    def _estimate(self, request: ChatRequest, messages: list[Message]) -> float:
        """US dollars that a call is expected to cost."""
        assert self._prices is not None
        return self._prices.cost(*self._guess(request, messages))

    def _guess(self, request: ChatRequest, messages: list[Message]) -> tuple[int, int]:
        """Prompt and completion tokens: counted; the task's mean so far, else its limit."""
        counted = count_tokens((message["content"] for message in messages), self.options.encoding)
        answers, tokens = self._output[request.task]
        limit = request.max_tokens or self.options.max_tokens
        output = tokens / answers if answers else limit or _UNKNOWN_OUTPUT_TOKENS
        return sum(counted) + 4 * len(messages), round(min(output, limit) if limit else output)

    def _settle(
        self, request: ChatRequest, trace: Trace, reservation: Reservation, reply: provider.Reply
    ) -> TokenUsage:
        """Book what a reply used."""
        prices = self._prices
        assert prices is not None
        answers, tokens = self._output[request.task]
        self._output[request.task] = (answers + 1, tokens + reply.completion_tokens)
        cost = prices.cost(reply.prompt_tokens, reply.completion_tokens)
        if prices.source == "litellm" and reply.cost_usd is not None:
            cost = reply.cost_usd  # knows of cached and tiered tokens
        reservation.settle(cost)
        usage = TokenUsage(reply.prompt_tokens, reply.completion_tokens, cost)
        trace.paid += usage
        return usage

    def _entry(
        self, key: str, kind: str, request: ChatRequest, text: str | None, usage: TokenUsage, seconds: float
    ) -> Entry:
        vendor, name = provider.provider_of(self.options.model)
        return Entry(
            key=key,
            kind=kind,
            task=request.task,
            provider=vendor,
            model=name,
            parameters=canonical(self._parameters(request)),
            response=text,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cost_usd=usage.cost_usd,
            seconds=seconds,
            batch=request.batch,
            unit=request.unit,
            run_id=request.run_id,
        )

    def _succeeded(self, request: ChatRequest, trace: Trace, dropped_records: int = 0) -> None:
        self.limits.circuit.succeeded()
        self.usage.add(request.task, replace(used(trace), dropped_records=dropped_records))

    def _hit(self, request: ChatRequest, trace: Trace, completion: Completion) -> None:
        self.usage.add(request.task, used(trace) + Usage(ledger_hits=1, dropped_records=completion.dropped_records))

    def _failed(self, request: ChatRequest, trace: Trace, error: Exception) -> None:
        self.usage.add(request.task, replace(used(trace), failures=1))
        if isinstance(error, InvalidAnswer | RetriesExhausted | RequestRejected):
            self.limits.circuit.gave_up(str(error))


def _read(
    reply: provider.Reply, request: ChatRequest
) -> tuple[structured_output.Parsed[Any] | None, InvalidAnswer | None]:
    """The answer as its response model, and why it should be asked again, if it should; both when it is a guess."""
    try:
        _check(reply)
        parsed = structured_output.parse(reply.text, request.response_model) if request.response_model else None
    except InvalidAnswer as problem:
        return None, problem
    if parsed and parsed.doubtful:
        return parsed, InvalidAnswer("It is not valid JSON.")
    return parsed, None


def _check(reply: provider.Reply) -> None:
    """Raise the `InvalidAnswer` that needs no parsing to be seen."""
    if reply.refusal or reply.finish_reason == "content_filter":
        raise RefusedAnswer(f"The model refused to answer: {(reply.refusal or 'content filter')[:200]}")
    if reply.finish_reason == "length":
        raise TruncatedAnswer("The answer was cut off at the limit of output tokens; it has to be shorter.")
    if not reply.text.strip():
        raise EmptyAnswer("The answer was empty.")


def _cure(kind: type[ModelError]) -> str:
    if kind is TruncatedAnswer:
        return "Raise the limit of output tokens, or use smaller text units."
    if kind is RefusedAnswer:
        return "Use another model for this text."
    return "Run again, or use a model that follows the format better."


def _about_format(error: RequestRejected) -> bool:
    return any(word in str(error).lower() for word in ("response_format", "json", "schema", "grammar"))


def _name(request: ChatRequest) -> str:
    """What a request is called in messages: its task, text unit and batch."""
    unit = f" of {request.unit}" if request.unit else ""
    return f"{request.task}{unit}{f' in batch {request.batch}' if request.batch else ''}"
