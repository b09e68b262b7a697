"""Signals during a query: DuckDB replaces the error that a signal handler raises by a RuntimeError.

A broad `except Exception` would take that for a failure of the work, and go on after
Ctrl-C, or after a Dagster run was terminated.
"""

import contextlib
from collections.abc import Iterator

_MESSAGE = "Query interrupted"


@contextlib.contextmanager
def interrupts_raised() -> Iterator[None]:
    """Raise KeyboardInterrupt, which is no Exception, if a signal ended a query of the block."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != _MESSAGE:
            raise
        raise KeyboardInterrupt("A signal ended the query.") from error
