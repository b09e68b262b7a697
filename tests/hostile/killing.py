"""Ends the work of a process at one of the moments when it changes files: commits, copies, renames and removals."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from graphrag_assets.store.index_database import IndexDatabase


class Killed(BaseException):
    """Stands for kill -9 within this process. No handler of errors catches it."""


@contextmanager
def killed_at(moment: int, die: Callable[[], None]) -> Iterator[None]:
    """Within the block, call `die` at the change number `moment` of files, and at all later ones.

    Each change has a moment before it and one after it.
    """
    passed = 0

    def pass_moment() -> None:
        nonlocal passed
        passed += 1
        if passed > moment:
            die()

    @contextmanager
    def transaction(working: IndexDatabase) -> Iterator[duckdb.DuckDBPyConnection]:
        with committed(working) as connection:
            yield connection
            pass_moment()
        pass_moment()

    with pytest.MonkeyPatch.context() as patch:
        committed = IndexDatabase.transaction
        patch.setattr(IndexDatabase, "transaction", transaction)
        for owner, name in CHANGES:
            patch.setattr(owner, name, _between(pass_moment, getattr(owner, name)))
        yield


CHANGES = ((Path, "replace"), (Path, "unlink"), (Path, "symlink_to"))


def _between(pass_moment: Callable[[], None], change: Callable) -> Callable:
    @functools.wraps(change)
    def changed(*args: object, **more: object) -> object:
        pass_moment()
        result = change(*args, **more)
        pass_moment()
        return result

    return changed


def raise_killed() -> None:
    """`die` within this process."""
    raise Killed
