"""Forked processes. The threads of polars and DuckDB do not exist in them, so what waits for these would never end."""

import os

from graphrag_assets.errors import GraphRAGError

_used, _left_behind = False, False


def use_threads() -> None:
    """Note that this process uses threads of libraries.

    Raises:
        GraphRAGError: the process is a fork of one that has used them.
    """
    global _used
    if _left_behind:
        raise GraphRAGError(
            "This process was forked from one that has read an index; the threads that reading needs are not in it. "
            'Start processes with multiprocessing.get_context("spawn"), or fork before the first question.'
        )
    _used = True


def _in_child() -> None:
    global _left_behind
    _left_behind = _left_behind or _used


os.register_at_fork(after_in_child=_in_child)
