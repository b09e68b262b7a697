"""The lock files of an index, in a folder of their own; and waiting for DuckDB's own locks.

The files stay when their locks are released: deleting one while another process waits for it would give both the lock.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from graphrag_assets.errors import refuse_denied
from graphrag_assets.ids import stable_id
from graphrag_assets.store.drafts import make_folder

FOLDER = "locks"
BATCH_LOCKS = 64
"""Batches share this many lock files. Two batches with the same one wait for each other."""


def lock_file(index_folder: Path, name: str) -> Path:
    """The file of the lock `name`; its folder is created if it is missing.

    Raises:
        AccessError: this user may not write it.
    """
    for folder in (index_folder, index_folder / FOLDER):  # made as a parent, it would be open to other users
        make_folder(folder)
    file = index_folder / FOLDER / f"{name}.lock"
    refuse_denied(file, os.R_OK | os.W_OK)
    return file


def batch_lock(batch: str) -> str:
    """The name of the lock of a batch."""
    return f"batch-{int(stable_id(batch)[:8], 16) % BATCH_LOCKS}"


def batch_locks() -> list[str]:
    """The names of the locks of all batches."""
    return [f"batch-{number}" for number in range(BATCH_LOCKS)]


def is_locked(error: duckdb.Error) -> bool:
    """Whether a DuckDB file cannot be opened because another process has it open."""
    return "Could not set lock" in str(error)


def when_unlocked(connect: Callable[[], duckdb.DuckDBPyConnection], seconds: float) -> duckdb.DuckDBPyConnection:
    """Call `connect`; while another process has the DuckDB file open, try again for so long.

    Raises:
        duckdb.IOException: that process keeps it open.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            return connect()
        except duckdb.IOException as error:
            if not is_locked(error) or time.monotonic() > end:
                raise
            time.sleep(0.2)
