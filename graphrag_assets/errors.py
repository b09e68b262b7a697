"""Every error this package raises on purpose. Each message says what happened, where, and what to do."""


class GraphRAGError(Exception):
    """Base of all errors of this package."""


class SettingsError(GraphRAGError):
    """A setting has a value that cannot work."""


class InputError(GraphRAGError):
    """The input folder, or a batch in it, cannot be used at all."""


class StoreError(GraphRAGError):
    """The working database or a published index is missing, locked or unreadable."""


class QueryError(GraphRAGError):
    """A query cannot be answered: no index, unknown method, or an index made for another model."""


class AlertError(GraphRAGError):
    """A message about a failed run could not be sent."""
