"""Every error this package raises on purpose. Each message says what happened, where, and what to do."""

import re

_USER = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY = re.compile(r"(\w+://[^\s?]+)\?\S*")


def without_credentials(text: str) -> str:
    """The text with its URLs shortened to what may be shown: no user, no password, no query.

    >>> without_credentials("https://me:secret@models.example/v1?token=t is down")
    'https://models.example/v1 is down'
    """
    return _QUERY.sub(r"\1", _USER.sub("", text))


class GraphRAGError(Exception):
    """Base of all errors of this package."""


class SettingsError(GraphRAGError):
    """A setting has a value that cannot work."""


class InputError(GraphRAGError):
    """The input folder, or a batch in it, cannot be used at all."""

    def __init__(self, message: str):
        super().__init__(without_credentials(message))


class RefusedFileError(OSError):
    """A file of the input folder is not read. `hint`: what to do about it."""

    def __init__(self, message: str, hint: str):
        super().__init__(message)
        self.strerror, self.hint = message, hint


class StoreError(GraphRAGError):
    """The working database or a publication is missing, locked or unreadable."""


class CheckError(GraphRAGError):
    """Blocking checks failed, so the index is not published."""


class QueryError(GraphRAGError):
    """A query cannot be answered: no index, unknown method, or an index made for another model."""


class AlertError(GraphRAGError):
    """A message about a failed run could not be sent."""
