"""One call within the limits, retried until it is answered or there is no point in asking again."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from graphrag_assets.errors import without_credentials
from graphrag_assets.llm import provider
from graphrag_assets.llm.model_errors import ModelError, RefusedAnswer, RequestRejected, RetriesExhausted
from graphrag_assets.llm.rate_limits import Limits
from graphrag_assets.llm.single_flight import Trace

R = TypeVar("R")

_numbers = itertools.count()


class BadReplyError(Exception):
    """Raised by a request whose reply is complete but unusable, such as too few vectors: it is retried."""

    status_code = 200


@dataclass(frozen=True)
class Target:
    """The model that is called, for limits and for messages."""

    model: str
    base_url: str | None
    api_key: str | None
    timeout: float
    limits: Limits

    def __str__(self) -> str:
        return f"{self.model} at {without_credentials(self.base_url)}" if self.base_url else self.model


async def call(target: Target, request: Callable[[], Awaitable[R]], trace: Trace, what: str, tokens: int = 0) -> R:
    """The result of `request`, made within the limits and again after passing failures.

    `request` sends by `send`; what must be true at that moment (not answered elsewhere, money left) it checks
    before. `what` names the call in messages; `tokens` is what it is expected to use.

    Raises:
        CircuitOpen: the model is not called any more (wrong key, unknown model, nothing but failures).
        RetriesExhausted: failed too often or for too long.
        RequestRejected, RefusedAnswer: the provider does not take this request.
    """
    limits, number, began, attempts = target.limits, next(_numbers), 0.0, itertools.count()
    while True:
        async with limits.slot() as waited:
            trace.seconds_waiting += waited
            for retry in attempts:
                trace.seconds_waiting += await limits.turn(tokens)
                began = began or time.monotonic()  # its time does not run while it waits for its first turn
                try:
                    trace.check()
                    result = await request()
                except ModelError:
                    raise
                except Exception as error:
                    failed = provider.failure(error, target.api_key)
                else:
                    limits.answered()
                    return result
                wait = _reaction(target, failed, what, number, retry)
                _check_patience(target, failed, what, retry, time.monotonic() - began, wait)
                trace.seconds_waiting += wait
                if limits.circuit.ever_answered:
                    break
                await limits.circuit.sleep(wait)  # in its slot: a server that is not there is not asked by all calls
        await limits.circuit.sleep(wait)


async def send(target: Target, request: Awaitable[R], trace: Trace) -> R:
    """Send one request, which from here on is finished whoever is cancelled."""
    trace.requests += 1
    trace.sending = True
    try:
        async with asyncio.timeout(target.timeout + 1):  # in case litellm forgets its own
            return await request
    finally:
        trace.sending = False


def _reaction(target: Target, failed: provider.Failure, what: str, number: int, retry: int) -> float:
    """Seconds until the next attempt; raises when there is to be none."""
    limits, said = target.limits, f"{_status(failed)}{failed.message}"
    if failed.kind == "refused":
        raise RefusedAnswer(f"{what}: the provider's content filter refused the request. {said}")
    if failed.kind == "rejected":
        raise RequestRejected(f"{what}: {target} rejects the request. {said}")
    if failed.kind == "fatal":
        limits.circuit.open(f"{target} cannot be called: {said} {_cure(failed.status)}")
        limits.circuit.check()
    if failed.kind == "limited":
        return limits.limited(retry, failed.retry_after)
    # Where nobody is, those that will come need not try when all that are under way have.
    enough = limits.under_way if failed.kind == "unconnected" else None
    limits.circuit.attempt_failed(number, f"{target}: {said}", enough)
    return max(failed.retry_after or 0.0, limits.backoff(retry))


def _check_patience(
    target: Target, failed: provider.Failure, what: str, retry: int, elapsed: float, wait: float
) -> None:
    """Raise `RetriesExhausted` when an attempt after `wait` seconds would be one too many, or too late."""
    options = target.limits.options
    if retry >= options.max_retries or elapsed + wait > options.deadline_seconds:
        raise RetriesExhausted(
            f"{what}: {target} did not answer in {retry + 1} attempts and {elapsed:.0f} seconds. Last: "
            f"{_status(failed)}{failed.message} Run again later: only what is missing is asked for."
        )


def _status(failed: provider.Failure) -> str:
    return f"HTTP {failed.status}: " if failed.status and failed.status != 200 else ""


def _cure(status: int | None) -> str:
    match status:
        case 401 | 403:
            return "Check the API key and what it may use."
        case 402 | 429:
            return "Check the account's credit."
        case 404:
            return "Check the model's name and the base URL."
    return "Check the model's name: provider/model, as litellm writes it."
