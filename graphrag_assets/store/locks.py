"""The locks of an index, files in a folder of their own.

One run at a time writes an index: a step holds the writer lock from its first read to its commit.

The files stay when their locks are released: deleting one while another process waits for it would give both the lock.
"""

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path

from filelock import FileLock, Timeout

from graphrag_assets.errors import refuse_denied
from graphrag_assets.store.drafts import make_folder

log = logging.getLogger(__name__)

FOLDER = "locks"
WRITER = "writer"
SECONDS_BETWEEN_LINES = 600.0
"""How often a run that waits for another says so."""
_POLL_SECONDS = 0.5


def lock_file(index_folder: Path, name: str) -> Path:
    """The file of the lock `name`; its folder is created if it is missing."""
    for folder in (index_folder, index_folder / FOLDER):  # made as a parent, it would be open to other users
        make_folder(folder)
    file = index_folder / FOLDER / f"{name}.lock"
    refuse_denied(file, os.R_OK | os.W_OK)
    return file


@contextlib.contextmanager
def writer_lock(
    index_folder: Path, step: str, run_id: str = "", canceled: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Hold the writer lock of an index for a step. While another process or thread has it, wait, and log for whom.

    The system releases the lock of a process that ends in any way.

    Raises:
        CancelledError: `canceled` while it waited.
    """
    lock = FileLock(lock_file(index_folder, WRITER), thread_local=False)  # a thread may release another's
    next_line = time.monotonic()
    while True:
        try:
            held = lock.acquire(timeout=_POLL_SECONDS if next_line > time.monotonic() else 0)
            break
        except Timeout:
            if canceled():
                raise CancelledError from None
            if time.monotonic() >= next_line:
                log.info("%s waits for %s, which writes the index", step, writer_in_words(index_folder))
                next_line = time.monotonic() + SECONDS_BETWEEN_LINES
    holder = _holder_file(index_folder)
    with held:
        with contextlib.suppress(OSError):  # the disk is full: then no one is told
            holder.write_text(json.dumps({"step": step, "run_id": run_id, "pid": os.getpid()}), encoding="utf-8")
        try:
            yield
        finally:
            holder.unlink(missing_ok=True)


def writer_in_words(index_folder: Path) -> str:
    """The step that holds the writer lock, its run and process."""
    try:
        holder = json.loads(_holder_file(index_folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # it has not written it yet
        return "another process"
    run = f" of run {holder['run_id']}" if holder["run_id"] else ""
    return f"{holder['step']}{run} (process {holder['pid']})"


def _holder_file(index_folder: Path) -> Path:
    return index_folder / FOLDER / f"{WRITER}.json"
