"""The files of an index folder: locks, drafts, and the numbered files of publications with the link to one.

One run at a time writes an index: a step holds the writer lock from its first read to its commit. The files of locks
stay when these are released: deleting one while another process waits for it would give both the lock. Other files are
written beside their place and moved there in one step, so that none is ever half there.
"""

import contextlib
import json
import logging
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from graphrag_assets.errors import AccessError, StoreError, refuse_denied

log = logging.getLogger(__name__)

LOCKS = "locks"
SECONDS_BETWEEN_LINES = 600.0
"""How often a run that waits for another says so."""


def lock_file(index_folder: Path, name: str) -> Path:
    """Return the file of the lock `name`; its folder is created if it is missing."""
    for folder in (index_folder, index_folder / LOCKS):  # made as a parent, it would be open to other users
        make_folder(folder)
    file = index_folder / LOCKS / f"{name}.lock"
    refuse_denied(file, os.R_OK | os.W_OK)
    return file


@contextlib.contextmanager
def writer_lock(index_folder: Path, step: str, run_id: str = "") -> Iterator[None]:
    """Hold the writer lock of an index for a step. While another process or thread has it, wait, and log for whom.

    The system releases the lock of a process that ends in any way.
    """
    file = lock_file(index_folder, "writer")
    lock, holder, seconds = FileLock(file, thread_local=False), file.with_suffix(".json"), 0.0
    while True:
        try:
            held = lock.acquire(timeout=seconds)
            break
        except Timeout:
            log.info("%s waits for %s, which writes the index", step, _in_words(holder))
            seconds = SECONDS_BETWEEN_LINES
    with held:
        with contextlib.suppress(OSError):  # the disk is full: then no one is told
            holder.write_text(json.dumps({"step": step, "run_id": run_id, "pid": os.getpid()}), encoding="utf-8")
        try:
            yield
        finally:
            holder.unlink(missing_ok=True)


def _in_words(holder_file: Path) -> str:
    """Name the step that holds the writer lock, its run and process."""
    try:
        holder = json.loads(holder_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # it has not written it yet
        return "another process"
    run = f" of run {holder['run_id']}" if holder["run_id"] else ""
    return f"{holder['step']}{run} (process {holder['pid']})"


PREFIX = ".draft-"
_mine = set[str]()
"""Names of the drafts that this process writes; behind the prefix they begin with its number."""


@contextlib.contextmanager
def replacing(place: Path) -> Iterator[Path]:
    """Yield a path to write a file or link at, which replaces what is at `place` at the end of the block unless it
    raises.

    Only the owner may read the file: it holds what the documents say. Drafts that killed processes left are removed.
    """
    make_folder(place.parent)
    refuse_denied(place.parent, os.R_OK | os.W_OK)
    refuse_folder(place)
    remove_leftovers(place.parent)
    draft = place.with_name(f"{PREFIX}{os.getpid()}-{uuid.uuid4().hex}-{place.name}")
    _mine.add(draft.name)
    try:
        yield draft
        if not draft.is_symlink():
            draft.chmod(0o600)
            with draft.open("rb") as written:
                os.fsync(written.fileno())  # a file that is empty after a power cut would be damage
        draft.replace(place)
    finally:
        _mine.discard(draft.name)
        for left in draft.parent.glob(f"{draft.name}*"):  # with DuckDB's log
            left.unlink()


def make_folder(folder: Path) -> None:
    """Create a folder of the index if it is missing, and let only its owner enter it."""
    try:
        if not folder.is_dir():
            refuse_denied(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):  # another user's, or on a file system without modes
            if folder.stat().st_mode & 0o077:
                folder.chmod(0o700)
    except (FileExistsError, NotADirectoryError):
        file = next(path for path in (folder, *folder.parents) if path.exists())
        raise StoreError(
            f"{file} is a file; the index needs this name for a folder. Move it away and run again."
        ) from None


def refuse_folder(place: Path) -> None:
    """Raise StoreError if there is a folder where the index has a file."""
    if place.is_dir() and not place.is_symlink():
        raise StoreError(f"{place} is a folder; the index needs this name for a file. Move it away and run again.")


def leftovers(*folders: Path) -> list[Path]:
    """Return the drafts in these folders that killed processes left."""
    return [path for folder in folders for path in folder.glob(f"{PREFIX}*") if not _is_used(path.name)]


def remove_leftovers(*folders: Path) -> None:
    """Remove the drafts that killed processes left in these folders."""
    for path in leftovers(*folders):
        path.unlink(missing_ok=True)


def _is_used(name: str) -> bool:
    """Whether the process that writes the draft lives, which another with its number may be taken for."""
    pid = name.removeprefix(PREFIX).partition("-")[0]
    if not pid.isdecimal() or int(pid) == os.getpid():
        return any(name.startswith(mine) for mine in _mine)
    return psutil.pid_exists(int(pid))


STABLE_NAME = "graphrag.duckdb"
"""The link to the publication that readers see."""
PUBLICATIONS = "publications"
_NUMBERED = re.compile(r"graphrag-(\d+)\.duckdb")


def kept_publications(index_folder: Path) -> list[int]:
    """Return the numbers of the kept publications, in order. Other files in their folder do not count."""
    matches = (_NUMBERED.fullmatch(path.name) for path in (index_folder / PUBLICATIONS).glob("*") if path.is_file())
    return sorted(int(match[1]) for match in matches if match)


def publication_file(index_folder: Path, number: int) -> Path:
    """Return the file of publication `number`."""
    return index_folder / PUBLICATIONS / f"graphrag-{number}.duckdb"


def current_number(index_folder: Path) -> int | None:
    """Return the number of the publication that readers see; None before the first."""
    link = index_folder / STABLE_NAME
    refuse_folder(link)
    try:
        target = link.readlink()
    except PermissionError:
        raise AccessError(link) from None
    except OSError:  # there is none, or a file has its name
        return None
    match = _NUMBERED.fullmatch(target.name)
    return int(match[1]) if match and target.parent == Path(PUBLICATIONS) else None


def point_to(index_folder: Path, number: int) -> None:
    """Make publication `number` the current one."""
    with replacing(index_folder / STABLE_NAME) as link:
        link.symlink_to(publication_file(Path(), number))
