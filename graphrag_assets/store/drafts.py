"""The one folder for files that are not finished, so that whatever a killed process leaves is found and removed."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

from filelock import FileLock, Timeout

from graphrag_assets.errors import StoreError, refuse_denied

FOLDER = "drafts"
_HELD, _LOCK = ".held", ".lock"


@contextlib.contextmanager
def draft_folder(index_folder: Path) -> Iterator[Path]:
    """A new folder for drafts, on the file system of the index; removed at the end, and what killed processes left too.

    A process holds a lock in its folder while it lives: a folder whose lock is free is a leftover.
    """
    drafts = index_folder / FOLDER
    make_folder(drafts)
    with _creating(drafts):
        _remove_leftovers(drafts)
        folder = Path(mkdtemp(dir=drafts))
        held = FileLock(folder / _HELD)
        held.acquire()
    try:
        yield folder
    finally:
        held.release()
        shutil.rmtree(folder, ignore_errors=True)


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


def copy_file(source: Path, target: Path) -> None:
    """Copy a file; on Btrfs and XFS the copy shares the blocks of the file until one of them changes.

    `Path.copy` of Python 3.14 does the same.
    """
    try:
        with source.open("rb") as read, target.open("wb") as written:
            while os.copy_file_range(read.fileno(), written.fileno(), 2**30):
                pass
    except (AttributeError, OSError):  # not on this system, or not on this file system
        shutil.copyfile(source, target)


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
    """The drafts that killed processes left: folders, and files beside them."""
    drafts = index_folder / FOLDER
    if not drafts.is_dir():
        return []
    with _creating(drafts):
        return _leftovers(drafts)


def remove_leftovers(index_folder: Path) -> None:
    """Remove the drafts that killed processes left."""
    drafts = index_folder / FOLDER
    if drafts.is_dir():
        with _creating(drafts):
            _remove_leftovers(drafts)


def _creating(drafts: Path) -> FileLock:
    """Held while a folder is made or looked at: a new one has no lock for a moment."""
    refuse_denied(drafts / _LOCK, os.R_OK | os.W_OK)
    return FileLock(drafts / _LOCK)


def _leftovers(drafts: Path) -> list[Path]:
    return [entry for entry in drafts.iterdir() if (_is_free(entry) if entry.is_dir() else entry.name != _LOCK)]


def _remove_leftovers(drafts: Path) -> None:
    for entry in _leftovers(drafts):
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()


def _is_free(folder: Path) -> bool:
    try:
        with FileLock(folder / _HELD, timeout=0):
            return True
    except Timeout:
        return False
