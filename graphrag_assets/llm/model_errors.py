# ruff: noqa: N818  (the names say what is the case)
"""What can go wrong between us and a model. Messages say what, where and the cure, and never contain a key."""

import re

from graphrag_assets.errors import GraphRAGError

_SECRETS = re.compile(r"(?i)\b(?:sk|pk|rk|gsk|xai|key|api)[-_][a-z0-9*_-]{8,}|bearer\s+\S+|://[^/\s:@]+:[^/\s@]+(?=@)")


class ModelError(GraphRAGError):
    """Base of all errors of model calls."""


class RetriesExhausted(ModelError):
    """The provider did not answer, however often it was asked; the call may be made again later."""


class RequestRejected(ModelError):
    """The provider refuses this very request (too long, an unsupported parameter); asking again is no use."""


class InvalidAnswer(ModelError):
    """The answer is not what was asked for, even after it was asked again with the reason."""


class TruncatedAnswer(InvalidAnswer):
    """The answer was cut off at the limit of output tokens."""


class EmptyAnswer(InvalidAnswer):
    """The model answered with nothing."""


class RefusedAnswer(InvalidAnswer):
    """The model, or a content filter, declined to answer."""


class BudgetExceeded(ModelError):
    """The next call might cost more than what is left of the budget; nothing was sent."""


class CircuitOpen(ModelError):
    """Calls to this model have been stopped, because all of them would fail."""


class LedgerError(ModelError):
    """The ledger cannot be read or written."""


def without_secrets(text: str, *secrets: str | None) -> str:
    """`text` with the given secrets, and whatever looks like a key, replaced by dots."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "…")
    return _SECRETS.sub("…", text)
