"""Files of the index are written beside their place and moved there in one step, so that none is ever half there."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from graphrag_assets.errors import StoreError, refuse_denied

PREFIX = ".draft-"
_mine = set[str]()
"""Names of the drafts that this process writes; behind the prefix they begin with its number."""


@contextlib.contextmanager
def replacing(place: Path) -> Iterator[Path]:
    """A path to write a file or link at, which replaces what is at `place` at the end of the block unless it raises.

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
    """The drafts in these folders that killed processes left."""
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
