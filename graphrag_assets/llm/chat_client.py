"""Chat requests: answered by the ledger or by the provider; an answer is valid, or an error is raised.

One call, top to bottom: `complete` looks in the ledger; `ModelClient._once` joins an identical call in flight, or waits
for one in another process; `_answer` requests an answer, and a second one if the first is not valid;
`retry.call_with_retries` keeps to the limits and repeats transient failures; `_attempt` sends one request, reads the
reply and stores a valid answer.
"""

import json
import logging
import re
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from graphrag_assets.llm import provider, structured_output
from graphrag_assets.llm.budget import Budget, Reservation
from graphrag_assets.llm.ledger import Entry, Hit, Ledger, canonical, key_of
from graphrag_assets.llm.model_client import TOKENIZER_MARGIN, ModelClient
from graphrag_assets.llm.model_errors import (
    EmptyAnswer,
    InvalidAnswer,
    ModelError,
    RefusedAnswer,
    RequestRejected,
    RetriesExhausted,
    TruncatedAnswer,
)
from graphrag_assets.llm.model_options import SAME_ANSWER, ChatOptions, ChatRequest, Completion, Message, Structured
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.question_budget import current_question
from graphrag_assets.llm.rate_limits import Limits
from graphrag_assets.llm.retry import REJECTS, call_with_retries
from graphrag_assets.llm.single_flight import Trace
from graphrag_assets.llm.usage import Usage
from graphrag_assets.text import count_tokens

_NOTHING = Usage()
_UNKNOWN_OUTPUT_TOKENS = 1000  # of a task without a limit that has not been answered yet
_LONGEST_ANSWER, _LONGEST_RECORDS = 8_000, 2_000  # tokens of an answer that a budget pays for: text, JSON
_USUAL_ANSWER, _USUAL_RECORDS = 600, 300  # until the first one is there
_LIMITS = frozenset(["max_tokens", "max_completion_tokens"])
_log = logging.getLogger(__name__)
_refused: dict[tuple[str, str | None], set[str]] = {}  # parameters that each model refuses, learned once per process
_modes: dict[tuple[str, str | None], Structured] = {}  # how each model is asked for JSON, learned once per process


class _Answer(NamedTuple):
    """One reply as a completion, and what is wrong with it, if anything.

    `guess`: the repair of broken JSON, used only if the second answer is no better; `kept_records` ranks guesses.
    """

    completion: Completion
    problem: InvalidAnswer | None = None
    guess: bool = False
    kept_records: int = 0


_TIMES_THE_PRICE = 10
"""A cost above this many times the price of the tokens comes from details of the usage that cannot be."""


async def _no_check() -> None:
    """No check before the first paid request."""


class ChatModel(ModelClient[ChatOptions]):
    """A chat model; see `ModelClient`.

    `cache_not_before` (ISO time, UTC): older answers in the ledger are requested, and paid for, again.
    """

    def __init__(
        self,
        options: ChatOptions,
        ledger: Ledger,
        limits: Limits | None = None,
        budget: Budget | None = None,
        cache_not_before: str | None = None,
    ):
        super().__init__(options, ledger, limits, budget)
        self._cache_not_before = cache_not_before
        self.before_paying: Callable[[], Awaitable[None]] = _no_check  # awaited where the ledger has no answer
        self._given: dict[str, Any] = json.loads(options.parameters)
        self._answered: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))  # by task: answers, their tokens

    async def complete(self, request: ChatRequest) -> Completion:
        """The valid answer to a request. An identical request in flight is joined, not sent again.

        Raises:
            InvalidAnswer: not valid in two attempts (`TruncatedAnswer`, `EmptyAnswer`, `RefusedAnswer`).
            RetriesExhausted, RequestRejected, BudgetExceeded, CircuitOpen, LedgerError: there is no answer.
        """
        key = self.key(request)
        stored = self._stored(request, await self.ledger.get(key))
        if stored is None:
            answer, first = await self._once(key, partial(self._answer, key, request))
            if first:
                return answer
            stored = replace(answer, from_ledger=True, usage=replace(answer.usage, cost_usd=0.0))
        self._count_hit(request, stored)
        return stored

    async def known(self, request: ChatRequest) -> Completion | None:
        """The answer from the ledger, or None; nothing is sent."""
        return self._stored(request, await self.ledger.get(self.key(request)))

    def key(self, request: ChatRequest) -> str:
        """The ledger's key: everything that determines the answer; neither address nor API key nor run."""
        schema = structured_output.schema_text(request.response_model) if request.response_model else None
        vendor, name = provider.provider_of(self.options.model)
        answering = {name: value for name, value in self._parameters(request).items() if name not in SAME_ANSWER}
        return key_of("chat", request.task, vendor, name, answering, request.messages, schema)

    def _parameters(self, request: ChatRequest) -> dict[str, Any]:
        """The parameters of a request: those of the settings replace its own."""
        limit = {} if request.max_tokens is None else {"max_tokens": request.max_tokens}
        together = {"temperature": request.temperature, **limit, **self._given}
        return {name: value for name, value in together.items() if value is not None}

    def _accepted(self, request: ChatRequest) -> dict[str, Any]:
        """The parameters of a request without those that the model refuses; warns of the given ones once."""
        unsupported = provider.unsupported(self.options.model, self.options.parameters)
        self._drop(unsupported, "litellm knows that it is not supported.")
        refused, given = self._refused, self._parameters(request)
        if current_question() and _LIMITS.isdisjoint(given):  # an answer without an end has no ceiling
            given["max_tokens"] = _LONGEST_ANSWER if request.response_model is None else _LONGEST_RECORDS
        return {name: value for name, value in given.items() if name not in refused}

    def _drop(self, names: Sequence[str], reason: str) -> None:
        """Send these parameters no more to this model in this process; the first call to do so warns."""
        if new := [name for name in names if name not in self._refused]:
            self._refused.update(new)
            _log.warning("%s refuses %s, so it is left out: %s", self.options.where, ", ".join(new), reason)

    @property
    def _refused(self) -> set[str]:
        return _refused.setdefault(self._place, set())

    def _drop_refused(self, sent: Iterable[str], error: RequestRejected) -> bool:
        """Drop the parameters that the server names in its rejection; False if it names none."""
        said = str(error).partition(REJECTS)[2]  # without the names of task, text unit and batch
        names = [name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said)]
        if names:
            self._drop(names, said)
        return bool(names)

    async def _answer(self, key: str, request: ChatRequest, trace: Trace) -> Completion:
        """Request the answer, once more if it is not valid, and store it."""
        began, messages, answers = time.monotonic(), list(request.messages), list[_Answer]()
        with self._counting_failure(request.task, trace):
            await self.before_paying()
            prices = await self.prices()
            while True:
                mode, parameters = self.structured_mode, self._accepted(request)
                attempt = partial(self._attempt, key, request, messages, parameters, mode, prices, trace)
                expected = self._expected_tokens(request, messages)
                try:
                    answer = await call_with_retries(self.options, self.limits, attempt, trace, request.name, expected)
                except RequestRejected as error:
                    if not self._weaken(request, mode, error) and not self._drop_refused(parameters, error):
                        raise
                    continue
                problem = answer.problem
                if problem is None:
                    break
                answers.append(answer)
                if len(answers) == 2:
                    answer = await self._best_guess(key, request, answers, began, trace)
                    break
                await self._store(uuid.uuid4().hex, "invalid", request, "", answer.completion.usage, began, trace)
                messages = structured_output.again(messages, answer.completion.text, problem)
        if answer.completion.from_ledger:
            self._count_hit(request, answer.completion, trace)
            return answer.completion
        completion = replace(
            answer.completion,
            usage=trace.paid,
            retries=trace.retries,
            seconds=time.monotonic() - began - trace.seconds_waiting,
            seconds_waiting=trace.seconds_waiting,
        )
        self._count_success(request, trace, _flaws(completion))
        return completion

    async def _attempt(
        self,
        key: str,
        request: ChatRequest,
        messages: list[Message],
        parameters: dict[str, Any],
        mode: Structured,
        prices: Prices,
        trace: Trace,
    ) -> _Answer:
        """Send one request, unless another process has stored the answer meanwhile.

        A valid answer is stored before the slot is free: a killed process loses at most its in-flight answers.
        """
        hit = await self.ledger.get(key)
        if stored := self._stored(request, hit):
            return _Answer(stored)
        if wanted := structured_output.response_format(request.response_model, mode):
            parameters = {**parameters, "response_format": wanted}
        messages = structured_output.with_schema(messages, request.response_model, mode)
        began = time.monotonic()
        with await self._reserved(request, messages, prices, parameters) as reservation:
            parameters = self._affordable(request, messages, parameters, prices, reservation)
            async with trace.request(self.options.timeout):
                reply = await provider.send_chat(self.options, messages, parameters)
            usage = self._settle(request, trace, reservation, reply, prices)
        answer = _read(reply, request, usage)
        if answer.problem is None:
            await self._store(key, "chat", request, reply.text, usage, began, replace=hit is not None)
        return answer

    async def stream(self, request: ChatRequest) -> AsyncIterator[str]:
        """The answer in pieces as they arrive, stored when it is complete; from the ledger it is one piece.

        Failures before the first piece are retried. Raises as `complete` does, and `RetriesExhausted` when the
        answer breaks off; an answer that turns out truncated or refused raises after its last piece.
        """
        if (stored := await self.known(request)) and stored.text:
            self._count_hit(request, stored)
            yield stored.text
            return
        key, messages, trace, began = self.key(request), list(request.messages), Trace(), time.monotonic()
        deadline = self.limits.options.deadline_seconds

        async def attempt() -> tuple[Any, provider.Chunks, Reservation]:
            with await self._reserved(request, messages, prices, parameters, deadline) as reservation:
                affordable = self._affordable(request, messages, parameters, prices, reservation)
                async with trace.request(self.options.timeout):
                    first, chunks = await provider.open_stream(self.options, messages, affordable)
                return first, chunks, reservation.transfer()

        with self._counting_failure(request.task, trace):
            await self.before_paying()
            prices = await self.prices()
            expected = self._expected_tokens(request, messages)
            while True:
                parameters = self._accepted(request)
                try:
                    first, chunks, reservation = await call_with_retries(
                        self.options, self.limits, attempt, trace, request.name, expected
                    )
                    break
                except RequestRejected as error:
                    if not self._drop_refused(parameters, error):
                        raise
            text, reply = list[str](), provider.Reply()
            try:
                async for piece, reply in provider.pieces(first, chunks, self.options.timeout):  # noqa: B007
                    if time.monotonic() - began > deadline:
                        raise TimeoutError("The answer does not end.")
                    text.append(piece)
                    if piece:
                        yield piece
            except Exception as error:
                message = provider.failure(error).message
                raise RetriesExhausted(
                    f"{request.name}: the answer was interrupted. {message} Run the query again."
                ) from None
            finally:
                reply = replace(reply, text="".join(text))
                usage = self._settle(request, trace, reservation, reply, prices)
            _check(reply)
            await self._store(key, "chat", request, reply.text, usage, began)
        self._count_success(request, trace)

    async def _best_guess(
        self, key: str, request: ChatRequest, answers: list[_Answer], began: float, trace: Trace
    ) -> _Answer:
        """Store and return the better of two repaired answers: the one with more records, on a tie the second.

        Raises:
            InvalidAnswer: neither is a guess.
        """
        second = answers[-1]
        guesses = [answer for answer in reversed(answers) if answer.guess]
        if not guesses:
            await self._store(uuid.uuid4().hex, "invalid", request, "", second.completion.usage, began, trace)
            kind, where = type(second.problem or InvalidAnswer()), f"{request.name}: {self.options.where}"
            raise kind(f"{where} gave no usable answer in two attempts. {second.problem} {_remedy(kind)}")
        best = max(guesses, key=lambda guess: guess.kept_records)
        outdated = self._stored(request, await self.ledger.get(key)) is None
        text, usage = best.completion.text, second.completion.usage
        await self._store(key, "chat", request, text, usage, began, trace, replace=outdated)
        return best

    def _stored(self, request: ChatRequest, hit: Hit | None) -> Completion | None:
        """The stored answer, unless it is too old or not valid for the response model, which may have changed."""
        if hit is None or (self._cache_not_before and hit.created_at < self._cache_not_before):
            return None
        text = hit.response or ""
        usage = Usage(prompt_tokens=hit.prompt_tokens, completion_tokens=hit.completion_tokens)
        if request.response_model is None:
            return Completion(text, usage=usage, from_ledger=True)
        try:
            parsed = structured_output.parse(text, request.response_model)
        except InvalidAnswer:
            return None
        return replace(_completion(text, parsed, usage), from_ledger=True)

    @property
    def structured_mode(self) -> Structured:
        """How JSON is requested from the model, as far as is known."""
        if self._place not in _modes:
            _modes[self._place] = provider.structured_mode(self.options)
        return _modes[self._place]

    def _weaken(self, request: ChatRequest, rejected: Structured, error: RequestRejected) -> bool:
        """Remember that the server rejects this way of requesting JSON; False if that is not what it rejects."""
        about_format = any(word in str(error).lower() for word in ("response_format", "json", "schema", "grammar"))
        if request.response_model is None or rejected not in structured_output.WEAKER or not about_format:
            return False
        if _modes[self._place] == rejected:  # else another call has done so
            _modes[self._place] = structured_output.WEAKER[rejected]
        return True

    def _expected_tokens(self, request: ChatRequest, messages: list[Message]) -> int:
        """Tokens that a call is expected to use, if they are limited."""
        return sum(self._estimate(request, messages)) if self.limits.counts_tokens else 0

    def _estimate(self, request: ChatRequest, messages: list[Message]) -> tuple[int, int]:
        """Prompt tokens, counted, and completion tokens: the task's mean so far, else its limit."""
        counted = count_tokens(message["content"] for message in messages)
        answers, tokens = self._answered[request.task]
        limit = self._parameters(request).get("max_tokens")
        unknown, schema = _UNKNOWN_OUTPUT_TOKENS, 0
        if current_question():  # which is not refused for a long answer: its length is limited
            unknown = _USUAL_ANSWER if request.response_model is None else _USUAL_RECORDS
            schema = _n_tokens(structured_output.schema_text(request.response_model)) if request.response_model else 0
        output = tokens / answers if answers else limit or unknown
        return sum(counted) + schema + 4 * len(messages), round(min(output, limit) if limit else output)

    async def _reserved(
        self,
        request: ChatRequest,
        messages: list[Message],
        prices: Prices,
        parameters: dict[str, Any],
        seconds: float | None = None,
    ) -> Reservation:
        longest = next((parameters[name] for name in _LIMITS & parameters.keys()), _LONGEST_ANSWER)
        return await self._reserve(
            prices, lambda: self._estimate(request, messages), request.name, longest, seconds=seconds or 0.0
        )

    def _affordable(
        self,
        request: ChatRequest,
        messages: list[Message],
        parameters: dict[str, Any],
        prices: Prices,
        reservation: Reservation,
    ) -> dict[str, Any]:
        """The parameters with the length of the answer that the budgets of question and run pay for."""
        ceilings = [reservation.held] if reservation.question else []
        ceilings += [reservation.ceiling] if reservation.ceiling else []
        if not ceilings or not prices.output_usd:
            return parameters
        left = min(ceilings) - prices.cost(round(self._estimate(request, messages)[0] * TOKENIZER_MARGIN))
        unlimited = {} if self._refused & _LIMITS else {"max_tokens": _LONGEST_ANSWER}
        limits = {name: parameters[name] for name in _LIMITS & parameters.keys()} or unlimited
        return parameters | {name: min(limit, int(left / prices.output_usd)) for name, limit in limits.items()}

    def _settle(
        self, request: ChatRequest, trace: Trace, reservation: Reservation, reply: provider.Reply, prices: Prices
    ) -> Usage:
        """Charge the budget with what a reply cost. Tokens that the server does not say are counted here."""
        sent, received, cached = reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens
        cost_usd = reply.cost_usd
        if sent is None or received is None:
            sent, received = self._estimate(request, list(request.messages))[0], _n_tokens(reply.text)
            cost_usd, cached = None, 0
        answers, tokens = self._answered[request.task]
        self._answered[request.task] = (answers + 1, tokens + received)
        cost = prices.cost(sent, received, cached)
        if prices.source == "litellm" and cost_usd is not None and 0 <= cost_usd <= _TIMES_THE_PRICE * cost:
            cost = cost_usd  # includes the prices of tiered tokens, and of tokens written to a cache
        reservation.settle(cost)
        usage = Usage(prompt_tokens=sent, cached_tokens=cached, completion_tokens=received, cost_usd=cost)
        trace.paid += usage
        return usage

    async def _store(
        self,
        key: str,
        kind: str,
        request: ChatRequest,
        text: str,
        usage: Usage,
        began: float,
        trace: Trace | None = None,
        replace: bool = False,
    ) -> None:
        seconds = time.monotonic() - began - (trace.seconds_waiting if trace else 0.0)
        if kind == "chat" and request.parts:
            if entries := self._entries_of_parts(request, text, usage, seconds):
                # Replaced: what another process may have stored meanwhile was paid for, too.
                await self.ledger.put(*entries, replace=True)
                return
            key, kind = uuid.uuid4().hex, "invalid"
        await self.ledger.put(self._entry(key, kind, request, text, usage, seconds), replace=replace)

    def _entries_of_parts(self, request: ChatRequest, text: str, usage: Usage, seconds: float) -> list[Entry]:
        """An entry for each part that is answered, with its share, by length, of tokens, cost and time."""
        if request.response_model is None or request.split is None:
            raise TypeError("A request with parts needs a response model and a function that splits its answer.")
        answers = request.split(structured_output.parse(text, request.response_model).value)
        lengths = {
            place: len(answer) + sum(len(message["content"]) for message in request.parts[place].messages)
            for place, answer in answers.items()
        }
        entries, used, left = list[Entry](), usage, sum(lengths.values())
        for place, answer in answers.items():
            # The rest is divided again each time, so that the sums are those of the whole.
            share, left = lengths[place] / left, left - lengths[place]
            part, own = request.parts[place], _share(used, share)
            used = replace(
                used,
                prompt_tokens=used.prompt_tokens - own.prompt_tokens,
                cached_tokens=used.cached_tokens - own.cached_tokens,
                completion_tokens=used.completion_tokens - own.completion_tokens,
                cost_usd=used.cost_usd - own.cost_usd,
            )
            time_of_part = seconds * share
            seconds -= time_of_part
            entries.append(self._entry(self.key(part), "chat", part, answer, own, time_of_part))
        return entries

    def _entry(self, key: str, kind: str, request: ChatRequest, text: str, usage: Usage, seconds: float) -> Entry:
        vendor, name = provider.provider_of(self.options.model)
        return Entry(
            key=key,
            kind=kind,
            task=request.task,
            provider=vendor,
            model=name,
            parameters=canonical(self._parameters(request)),
            response=text if kind == "chat" else None,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            cost_usd=usage.cost_usd,
            seconds=seconds,
            batch=request.batch,
            unit=request.unit,
            run_id=request.run_id,
        )

    def _count_hit(self, request: ChatRequest, completion: Completion, trace: Trace | None = None) -> None:
        hit = replace(_flaws(completion), ledger_hits=1)
        self.usage.add(request.task, trace.usage + hit if trace else hit)

    def _count_success(self, request: ChatRequest, trace: Trace, flaws: Usage = _NOTHING) -> None:
        self.limits.breaker.succeeded()
        self.usage.add(request.task, trace.usage + flaws)


def _read(reply: provider.Reply, request: ChatRequest, usage: Usage) -> _Answer:
    """The reply as its response model, and what is wrong with it."""
    completion = Completion(reply.text, usage=usage)
    try:
        _check(reply)
        if request.response_model is None:
            return _Answer(completion)
        parsed = structured_output.parse(reply.text, request.response_model)
    except TruncatedAnswer as problem:
        return _Answer(replace(completion, text=""), problem)  # half an answer is not shown to the model again
    except InvalidAnswer as problem:
        return _Answer(completion, problem)
    completion = _completion(reply.text, parsed, usage)
    if parsed.doubtful:
        return _Answer(completion, InvalidAnswer("It is not valid JSON."), True, parsed.kept_records)
    return _Answer(completion)


def _completion(text: str, parsed: structured_output.Parsed[Any], usage: Usage) -> Completion:
    return Completion(text, parsed.value, usage, dropped_records=parsed.dropped_records, guessed=parsed.doubtful)


def _flaws(completion: Completion) -> Usage:
    return Usage(dropped_records=completion.dropped_records, guessed_repairs=int(completion.guessed))


def _check(reply: provider.Reply) -> None:
    """Raise the `InvalidAnswer` that can be detected without parsing."""
    if reply.refusal or reply.finish_reason == "content_filter":
        raise RefusedAnswer(f"The model refused to answer: {(reply.refusal or 'content filter')[:200]}")
    if reply.finish_reason == "length":
        raise TruncatedAnswer("The answer was cut off at the limit of output tokens; it has to be shorter.")
    if not reply.text.strip():
        raise EmptyAnswer("The answer was empty.")


def _remedy(kind: type[ModelError]) -> str:
    if kind is TruncatedAnswer:
        return "Raise the limit of output tokens, or use smaller text units."
    if kind is RefusedAnswer:
        return "Use another model for this text."
    return "Run again, or use a model that follows the format better."


def _share(usage: Usage, share: float) -> Usage:
    """A share of tokens, rounded, and of cost."""
    return Usage(
        prompt_tokens=round(usage.prompt_tokens * share),
        cached_tokens=round(usage.cached_tokens * share),
        completion_tokens=round(usage.completion_tokens * share),
        cost_usd=usage.cost_usd * share,
    )


def _n_tokens(text: str) -> int:
    return sum(count_tokens([text]))
