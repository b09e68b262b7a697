# ruff: noqa: N818  (the names state the condition)
"""Errors of model calls. Messages say what happened, where, and the remedy, and never contain a key."""

from graphrag_assets.errors import GraphRAGError, ModelUnavailable


class ModelError(GraphRAGError):
    """Base of all errors of model calls."""


class RetriesExhausted(ModelError, ModelUnavailable):
    """The provider did not answer after all retries; the call may succeed later.

    `may_be_of_request`: another request may be answered.
    """

    def __init__(self, message: str, may_be_of_request: bool = False):
        super().__init__(message)
        self.may_be_of_request = may_be_of_request


class RequestRejected(ModelError):
    """The provider rejects this request (too long, an unsupported parameter); retrying does not help.

    `said`: the provider's own words.
    """

    def __init__(self, message: str, said: str = ""):
        super().__init__(message)
        self.said = said


class InvalidAnswer(ModelError):
    """The answer is not valid, even after a second request that states the reason."""


class TruncatedAnswer(InvalidAnswer):
    """The answer was cut off at the limit of output tokens."""


class EmptyAnswer(InvalidAnswer):
    """The answer is empty."""


class RefusedAnswer(InvalidAnswer):
    """The model, or a content filter, declined to answer."""


class GivenUp(InvalidAnswer):
    """Two runs got no valid answer to this request, so it is not sent again unless someone asks for it."""


class BudgetExceeded(ModelError):
    """The next call is expected to cost more than the rest of the budget; nothing was sent."""


class CircuitOpen(ModelError, ModelUnavailable):
    """The calls to this model are suspended, because all of them would fail."""


class LedgerError(ModelError):
    """The ledger cannot be read or written. `may_pass`: another attempt may succeed."""

    def __init__(self, message: str, may_pass: bool = False):
        super().__init__(message)
        self.may_pass = may_pass


class BadReplyError(Exception):
    """A reply that is complete but unusable, such as too few vectors: the request is sent again."""

    status_code = 200


def stops_the_run(error: BaseException) -> bool:
    """Whether `error` concerns the whole run (budget spent, circuit open, ledger unusable), not one answer."""
    return isinstance(error, BudgetExceeded | CircuitOpen | LedgerError)
