"""One call to a chat model, from the ledger to litellm and back, in the order in which it is made.

`complete` looks in the ledger and joins an identical call in flight. `_answer` requests an answer, and a second one if
the first is not valid. `_request` keeps to the limits of the model and repeats transient failures. `_attempt` checks
the budget, sends one request, reads the reply and stores a valid answer. `stream` makes the same steps for an answer in
pieces.

What these steps use is elsewhere: parameters (`chat_parameters`), tokens and cost (`chat_costs`), rows of the ledger
(`chat_ledger`), replies (`chat_replies`), waits and errors (`retry`), litellm's setup and replies (`provider`).
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm import provider, structured_output
from graphrag_assets.llm.budget import Budget
from graphrag_assets.llm.chat_costs import ChatCosts, tokens_if_cut
from graphrag_assets.llm.chat_ledger import ChatLedger
from graphrag_assets.llm.chat_parameters import ChatParameters
from graphrag_assets.llm.chat_replies import Answer, best_guess, ending_of, flaws, read_answer, unusable
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_client import ModelClient
from graphrag_assets.llm.model_errors import GivenUp, RefusedAnswer, RequestRejected, RetriesExhausted, StoredInParts
from graphrag_assets.llm.model_options import ChatOptions, ChatRequest, Completion, Message, Structured
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.rate_limits import Limits
from graphrag_assets.llm.retry import attempts
from graphrag_assets.llm.single_flight import Trace
from graphrag_assets.llm.thoughts import AnswerReader

_log = logging.getLogger(__name__)
_without_opening_tag: set[tuple[str, str | None]] = set()  # models with such thoughts, learned once per process
_cutting: set[tuple[str, str | None]] = set()  # models whose servers cut prompts, reported once per process
T = TypeVar("T")
Send = Callable[[list[Message], dict[str, Any], Structured], Awaitable[T]]
"""Sends one request with these messages and parameters, which asks for JSON in this way."""


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
        self._parameters = ChatParameters(options)
        self._costs = ChatCosts(self._parameters)
        self._answers = ChatLedger(ledger, options.model, self._parameters, cache_not_before)

    async def complete(self, request: ChatRequest) -> Completion:
        """The valid answer to a request. An identical request in flight is joined, not sent again.

        Raises:
            InvalidAnswer: not valid in two attempts (`TruncatedAnswer`, `EmptyAnswer`, `RefusedAnswer`), or in those of
                two runs (`GivenUp`).
            RetriesExhausted, RequestRejected, BudgetExceeded, CircuitOpen, LedgerError: there is no answer.
            StoredInParts: all parts of the request were answered since the caller looked for them in the ledger.
        """
        key = self.key(request)
        stored = self._answers.valid(request, await self.ledger.get(key))
        if stored is None:
            if request.run_id and (reason := await self.given_up(request)):
                raise reason
            call = partial(self._answer, key, request)
            answer, first = await self.ledger.single_flight.share(key, call)
            if first:
                return answer
            stored = replace(answer, from_ledger=True, usage=replace(answer.usage, cost_usd=0.0))
        self._count_hit(request, stored)
        return stored

    async def _answer(self, key: str, request: ChatRequest, trace: Trace) -> Completion:
        """Request an answer, and a second one if it is not valid."""
        if request.parts and all([await self.known(part) for part in request.parts]):
            raise StoredInParts(request.name)
        async with self._counting_failure(request.task, trace):
            began, messages = time.monotonic(), list(request.messages)
            await self.before_paying(request)
            prices = await self.prices()
            send = partial(self._attempt, key, request, prices, trace)
            try:
                answer = await self._request(request, messages, trace, send)
            except RefusedAnswer as refusal:  # by a content filter, before the model
                raise await self._answers.put_failure(
                    request, key, refusal, Usage(), trace.seconds_since(began)
                ) from None
            if answer.problem:
                await self._answers.put_invalid(request, answer.completion.usage, trace.seconds_since(began))
                messages = structured_output.again(messages, answer.completion.text, answer.problem)
                first, answer = answer, await self._request(request, messages, trace, send)
                if answer.problem:
                    answer = await self._best_guess(key, request, first, answer, trace.seconds_since(began))
        if answer.completion.from_ledger:
            self._count_hit(request, answer.completion, trace)
            return answer.completion
        self._count_success(request, answer.completion, trace)
        return replace(
            answer.completion,
            usage=trace.paid,
            retries=trace.retries,
            seconds=trace.seconds_since(began),
            seconds_waiting=trace.seconds_waiting,
        )

    async def _request(self, request: ChatRequest, messages: list[Message], trace: Trace, send: Send[T]) -> T:
        """What `send` returns for one request, in the form that the server accepts; transient failures are repeated."""
        tokens = self._expected_tokens(request, messages)
        while True:
            mode, parameters = self.structured_mode, self._parameters.accepted(request)
            try:
                async with self._slot(trace):
                    async for attempt in attempts(self.options, self.limits, trace, request.name, tokens):
                        with attempt:
                            sent = await send(messages, parameters, mode)
                return sent
            except RequestRejected as error:
                if not self._parameters.adapt(request, mode, parameters, error):
                    raise

    async def _attempt(
        self,
        key: str,
        request: ChatRequest,
        prices: Prices,
        trace: Trace,
        messages: list[Message],
        parameters: dict[str, Any],
        mode: Structured,
    ) -> Answer:
        """Send one request, unless another process has stored the answer meanwhile.

        A valid answer is stored before the slot is free: a killed process loses at most its in-flight answers.
        """
        hit = await self.ledger.get(key)
        if stored := self._answers.valid(request, hit):
            return Answer(stored)
        if wanted := structured_output.response_format(request.response_model, mode):
            parameters = {**parameters, "response_format": wanted}
        messages = structured_output.with_schema(messages, request.response_model, mode)
        began = time.monotonic()
        await self._check_budget(prices, partial(self._costs.estimate, request, messages), request.name)
        async with trace.request(self.options.timeout):
            where = provider.address(self.options)
            response = await provider.litellm().acompletion(messages=messages, **where, **parameters)
        reply = provider.read_reply(response, self.options.model)
        self._learn_from(reply, messages)
        usage = self._costs.usage_of(request, reply, prices)
        self._pay(trace, usage)
        answer = read_answer(reply, request, usage)
        if answer.problem is None:
            seconds = time.monotonic() - began
            await self._answers.put(request, key, reply.text, usage, seconds, replace=hit is not None)
        return answer

    async def _best_guess(
        self, key: str, request: ChatRequest, first: Answer, second: Answer, seconds: float
    ) -> Answer:
        """Store and return the better of two repaired answers: the one with more records, on a tie the second.

        Raises:
            InvalidAnswer: neither is a guess.
        """
        best, usage = best_guess([first, second]), second.completion.usage
        if best is None:
            error = unusable(request.name, self.options.where, second.problem)
            raise await self._answers.put_failure(request, key, error, usage, seconds)
        outdated = self._answers.valid(request, await self.ledger.get(key)) is None
        await self._answers.put(request, key, best.completion.text, usage, seconds, replace=outdated)
        return best

    async def stream(self, request: ChatRequest) -> AsyncIterator[str]:
        """The answer in pieces as they arrive, stored when it is complete; from the ledger it is one piece.

        Failures before the first piece are retried. Raises as `complete` does, and `RetriesExhausted` when the
        answer breaks off; an answer that turns out truncated or refused raises after its last piece.
        """
        if (stored := await self.known(request)) and stored.text:
            self._count_hit(request, stored)
            yield stored.text
            return
        trace, began, text, reply, ended = Trace(), time.monotonic(), list[str](), provider.Reply(), False
        async with self._counting_failure(request.task, trace):
            await self.before_paying(request)
            prices = await self.prices()
            send = partial(self._open, request, prices, trace)
            first, chunks = await self._request(request, list(request.messages), trace, send)
            try:
                reader = AnswerReader(holds_back=self._place in _without_opening_tag)
                async for piece, reply in provider.pieces(first, chunks, self.options.timeout, reader):  # noqa: B007
                    if time.monotonic() - began > self.limits.options.deadline_seconds:
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
                usage = self._costs.usage_of(request, reply, prices)
                self._pay(trace, usage)
                problem = ending_of(reply)
                if problem or not ended:  # what it cost is recorded, whatever has ended it
                    await self._answers.put_invalid(request, usage, trace.seconds_since(began))
            self._learn_from(reply, request.messages)
            if problem:
                raise problem
            await self._answers.put(request, self.key(request), reply.text, usage, time.monotonic() - began)
        self._count_success(request, Completion(reply.text), trace)

    async def _open(
        self,
        request: ChatRequest,
        prices: Prices,
        trace: Trace,
        messages: list[Message],
        parameters: dict[str, Any],
        _: Structured,
    ) -> tuple[Any, provider.Chunks]:
        """Send a streamed request: its first chunk, and the rest."""
        await self._check_budget(prices, partial(self._costs.estimate, request, messages), request.name)
        async with trace.request(self.options.timeout):
            where = provider.address(self.options)
            chunks = await provider.litellm().acompletion(messages=messages, **where, **parameters, **provider.STREAMED)
            return await anext(chunks), chunks

    @property
    def cuts_prompts(self) -> bool:
        """Whether the server is known to have cut a prompt."""
        return self._place in _cutting

    def _learn_from(self, reply: provider.Reply, messages: Sequence[Message]) -> None:
        """Warn of a prompt that was cut, and of thoughts without their opening tag, whose answers are shown whole."""
        if not self.cuts_prompts and (n_sent := tokens_if_cut(messages, reply)):
            _cutting.add(self._place)
            _log.warning(
                "%s counted %d tokens of a prompt of about %d: it seems to cut prompts, so the model does not read all "
                "of them. Raise its context: for Ollama num_ctx in GRAPHRAG_MODEL_PARAMETERS (models ollama_chat/…) or "
                "OLLAMA_CONTEXT_LENGTH in the environment of its server.",
                self.options.where,
                reply.prompt_tokens,
                n_sent,
            )
        if reply.lacked_opening_tag and self._place not in _without_opening_tag:
            _without_opening_tag.add(self._place)
            _log.warning(
                "%s sends thoughts without their opening tag, so its answers are not streamed. Start its server with a "
                "reasoning parser (vLLM: --reasoning-parser, llama.cpp: --reasoning-format).",
                self.options.where,
            )

    async def known(self, request: ChatRequest) -> Completion | None:
        """The answer from the ledger, or None; nothing is sent."""
        return self._answers.valid(request, await self.ledger.get(self.key(request)))

    async def given_up(self, request: ChatRequest) -> GivenUp | None:
        """Why a request of indexing is not sent again, because two runs got no valid answer; None if it may be."""
        return await self._answers.given_up(self.key(request))

    def key(self, request: ChatRequest) -> str:
        """The ledger's key: everything that determines the answer; neither address nor API key nor run."""
        return self._answers.key(request)

    @property
    def structured_mode(self) -> Structured:
        """How JSON is requested from the model, as far as is known."""
        return self._parameters.structured_mode

    def _expected_tokens(self, request: ChatRequest, messages: list[Message]) -> int:
        """Tokens that a call is expected to use, if they are limited."""
        return sum(self._costs.estimate(request, messages)) if self.limits.counts_tokens else 0

    def _count_hit(self, request: ChatRequest, completion: Completion, trace: Trace | None = None) -> None:
        hit = replace(flaws(completion), ledger_hits=1)
        self.usage.add(request.task, trace.usage + hit if trace else hit)

    def _count_success(self, request: ChatRequest, completion: Completion, trace: Trace) -> None:
        self.limits.breaker.succeeded()
        self.usage.add(request.task, trace.usage + flaws(completion))
