"""The one folder for files that are not finished, so that whatever a killed process leaves is found and removed."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from graphrag_assets.errors import StoreError, refuse_denied

FOLDER = "drafts"
_mine = set[str]()
"""Names of the folders that this process uses; their names begin with its number."""


@contextlib.contextmanager
def draft_folder(index_folder: Path) -> Iterator[Path]:
    """A new folder for drafts, on the file system of the index; removed at the end, and what killed processes left too.

    Raises:
        AccessError: this user may not write there.
    """
    drafts = index_folder / FOLDER
    make_folder(drafts)
    refuse_denied(drafts, os.R_OK | os.W_OK)
    remove_leftovers(index_folder)
    folder = drafts / f"{os.getpid()}-{uuid.uuid4().hex}"
    _mine.add(folder.name)
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _mine.discard(folder.name)


def make_folder(folder: Path) -> None:
    """Create a folder of the index if it is missing, and let only its owner enter it.

    Raises:
        StoreError: there is a file in its place, or in that of a folder above, or this user may not write there.
    """
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


def move_into_place(draft: Path, place: Path) -> None:
    """Replace the file or link at `place` in one step. Only the owner may read it: it holds what the documents say.

    Raises:
        StoreError: there is a folder at `place`.
    """
    refuse_folder(place)
    if not draft.is_symlink():
        draft.chmod(0o600)
    draft.replace(place)


def refuse_folder(place: Path) -> None:
    """Raise StoreError if there is a folder where the index has a file."""
    if place.is_dir() and not place.is_symlink():
        raise StoreError(f"{place} is a folder; the index needs this name for a file. Move it away and run again.")


def leftovers(index_folder: Path) -> list[Path]:
    """The drafts that killed processes left."""
    drafts = index_folder / FOLDER
    return [entry for entry in drafts.iterdir() if not _is_used(entry.name)] if drafts.is_dir() else []


def remove_leftovers(index_folder: Path) -> None:
    """Remove the drafts that killed processes left."""
    for entry in leftovers(index_folder):
        shutil.rmtree(entry, ignore_errors=True)


def _is_used(name: str) -> bool:
    """Whether the process that made the folder lives, which another with its number may be taken for."""
    pid = name.partition("-")[0]
    if not pid.isdecimal() or int(pid) == os.getpid():
        return name in _mine
    return psutil.pid_exists(int(pid))
