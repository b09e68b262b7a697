"""The attempts at a call: how transient failures are repeated, and what other failures mean."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NoReturn

from tenacity import AsyncRetrying, AttemptManager, RetryCallState, retry_if_exception_type, wait_random_exponential

from graphrag_assets.llm import provider
from graphrag_assets.llm.model_errors import CircuitOpen, ModelError, RefusedAnswer, RequestRejected, RetriesExhausted
from graphrag_assets.llm.model_options import LimitOptions, ModelOptions
from graphrag_assets.llm.rate_limits import Limits
from graphrag_assets.llm.single_flight import Trace

log = logging.getLogger(__name__)

REJECTS = " rejects the request. "
"""Stands before the provider's words in a `RequestRejected`."""
_ATTEMPTS_WITHOUT_REPLY = 3
"""Number of attempts for a model that has never replied: it is probably unreachable."""


class _TransientError(Exception):
    """A failure after which the request is sent again."""

    def __init__(self, failure: provider.Failure):
        super().__init__(failure.message)
        self.failure = failure


async def attempts(
    options: ModelOptions, limits: Limits, trace: Trace, what: str, tokens: int = 0, n_suspicious: int | None = None
) -> AsyncIterator[AbstractContextManager[None]]:
    """The attempts at one call, as contexts: the first, and one after each transient failure in the one before.

    Each waits for its turn in the rates. Waits after failures grow exponentially, with full jitter; Retry-After is
    honored up to its maximum, as far as the deadline allows. The caller keeps its slot meanwhile, so a struggling
    server gets fewer requests. `what` names the call in messages; `tokens` is its expected use. After `n_suspicious`
    attempts, a failure that may lie in the request ends the call.

    The caller lets the loop end by itself: no attempt follows one that succeeds, and errors are raised by the loop.

    Raises:
        CircuitOpen: calls to the model are suspended (wrong key, unknown model, repeated failures).
        RetriesExhausted: failed too often or for too long.
        RequestRejected, RefusedAnswer: the provider does not accept this request.
    """
    trace.seconds_waiting += await limits.turn(tokens)
    began, n_attempts = time.monotonic(), 0

    def must_stop(state: RetryCallState) -> bool:
        too_late = time.monotonic() - began + state.upcoming_sleep > limits.options.deadline_seconds
        error = state.outcome.exception() if state.outcome else None
        is_suspicious = isinstance(error, _TransientError) and error.failure.may_be_of_request
        most = n_suspicious if n_suspicious and is_suspicious else limits.options.max_retries + 1
        return too_late or state.attempt_number >= most

    def exhausted(last: _TransientError) -> RetriesExhausted:
        return RetriesExhausted(
            f"{what}: {options.where} did not answer in {n_attempts} attempts and {time.monotonic() - began:.0f} "
            f"seconds. Last: {_in_words(last.failure)} Run again later: only missing answers are requested.",
            last.failure.may_be_of_request,
            last.failure.timed_out,
        )

    def keep_error(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        trace.last_error = exhausted(error) if isinstance(error, _TransientError) else None

    async def sleep_and_wait_for_turn(seconds: float) -> None:
        trace.seconds_waiting += seconds
        async with limits.breaker.waiting():
            await asyncio.sleep(seconds)
        trace.seconds_waiting += await limits.turn(tokens)

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(_TransientError),
        wait=_wait(limits.options),
        stop=must_stop,
        sleep=sleep_and_wait_for_turn,
        before_sleep=keep_error,
        reraise=True,
    )
    try:
        async for attempt in retrying:
            trace.check()
            n_attempts += 1
            yield _classified(attempt, options, limits, what, n_attempts)
    except _TransientError as last:
        raise exhausted(last) from None


@contextmanager
def _classified(
    attempt: AttemptManager, options: ModelOptions, limits: Limits, what: str, n_attempts: int
) -> Iterator[None]:
    """The attempt of tenacity, which keeps its failure for the next turn of the loop, with the error that it means."""
    with attempt:
        try:
            yield
        except ModelError:
            raise
        except Exception as error:
            raise_for(provider.failure(error), options, limits, what, n_attempts)
        limits.breaker.has_replied = True


def _wait(options: LimitOptions) -> Callable[[RetryCallState], float]:
    """Seconds before the next attempt: the server's Retry-After plus a random part of the backoff."""
    backoff = wait_random_exponential(multiplier=options.backoff_seconds, max=options.backoff_max_seconds)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.failure.retry_after if isinstance(error, _TransientError) else None
        return min(asked or 0.0, options.retry_after_max_seconds) + backoff(state)

    return wait


def raise_for(failure: provider.Failure, options: ModelOptions, limits: Limits, what: str, n_attempts: int) -> NoReturn:
    """Raise the error for a failed attempt; a fatal one also opens the circuit breaker for other calls to the model.

    Raises:
        CircuitOpen, RequestRejected, RefusedAnswer: see `attempts`.
        _TransientError: the request is to be sent again.
    """
    message = _in_words(failure)
    breaker = limits.breaker
    match failure.kind:
        case "refused":
            raise RefusedAnswer(f"{what}: the provider's content filter refused the request. {message}") from None
        case "rejected":
            raise RequestRejected(f"{what}: {options.where}{REJECTS}{message}") from None
        case "fatal":
            reason = f"{options.where} cannot be called: {message} {_remedy(failure)}"
            breaker.trip(reason)
            raise CircuitOpen(reason) from None
        case "rate_limited":
            limits.pause(_pause(failure, options, limits.options))
        case "unconnected" if not breaker.has_replied and n_attempts >= _ATTEMPTS_WITHOUT_REPLY:
            breaker.trip(f"{options.where}: {message}")
            raise CircuitOpen(f"{options.where}: {message}") from None
        case "transient" if not breaker.has_replied and n_attempts == _ATTEMPTS_WITHOUT_REPLY:
            breaker.failed(f"{options.where}: {message}")
    raise _TransientError(failure) from None


def _pause(failure: provider.Failure, options: ModelOptions, limits: LimitOptions) -> float:
    """Seconds for which no request is sent after HTTP 429."""
    asked = failure.retry_after or limits.backoff_seconds
    if asked > limits.retry_after_max_seconds:
        log.warning(
            "%s asks to wait for %.0f s; waiting for %.0f s.", options.where, asked, limits.retry_after_max_seconds
        )
    return min(asked, limits.retry_after_max_seconds)


def _in_words(failure: provider.Failure) -> str:
    status = f"HTTP {failure.status}: " if failure.status and failure.status != 200 else ""
    slow = " If the server is slow, raise GRAPHRAG_REQUEST_TIMEOUT." if failure.timed_out else ""
    return f"{status}{failure.message}{slow}"


def _remedy(failure: provider.Failure) -> str:
    if failure.not_installed:
        return "Install the missing package."
    match failure.status:
        case 401 | 403:
            return "Check the API key and what it may use."
        case 402 | 429:
            return "Check the account's credit."
        case 404:
            return "Check the model's name and the base URL."
    return "Check the model's name: provider/model, as litellm writes it."
