"""Every error this package raises on purpose. Each message says what happened, where, and what to do."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from graphrag_assets.runtime.outgoing import mask, shown


class GraphRAGError(Exception):
    """Base of all errors of this package. No message has a secret or a control character, wherever it goes."""

    def __init__(self, message: str = ""):
        super().__init__(shown(message))


class SettingsError(GraphRAGError):
    """A setting has a value that cannot work."""


class InputError(GraphRAGError):
    """The input folder, or a batch in it, cannot be used at all."""


class UnreadableBatchError(InputError):
    """A folder within a batch cannot be listed, so that nobody knows which files the batch has."""


class RefusedFileError(OSError):
    """A file of the input folder is not read. `hint`: what to do about it."""

    def __init__(self, message: str, hint: str):
        super().__init__(shown(message))
        self.strerror, self.hint = shown(message), shown(hint)


class StoreError(GraphRAGError):
    """The working database or a publication is missing, locked or unreadable."""


class OtherVersionError(StoreError):
    """The working database or a publication was made by another version of this package, with other tables."""

    def __init__(self, path: Path):
        super().__init__(
            f"{path} was made by another version of graphrag-assets, which has other tables. Run `graphrag-assets "
            "index`: it derives the index again from its input, and paid answers come from the ledger."
        )


class DiskFullError(StoreError):
    """Nothing more could be written."""


class AccessError(StoreError):
    """A file or folder of the index cannot be read or written by this user."""

    def __init__(self, path: Path):
        super().__init__(f"{path} cannot be {_what_is_denied(path)}")


class CheckError(GraphRAGError):
    """Blocking checks failed, so the index is not published."""


class QueryError(GraphRAGError):
    """A query cannot be answered: no index, unknown method, or an index made for another model."""


class InvalidOption(QueryError, ValueError):  # noqa: N818  (the name states the condition)
    """A question or an option of a search is not allowed."""


class QueryTimeout(QueryError, TimeoutError):  # noqa: N818
    """A search took longer than its timeout. Its cause is why the model had not answered."""


class ModelUnavailable(GraphRAGError):  # noqa: N818
    """A model did not answer, or cannot be used for now; the same call may succeed later."""


class IndexMissing(StoreError):  # noqa: N818
    """Nothing is published in the place where an index was looked for."""


@contextlib.contextmanager
def masked_errors() -> Iterator[None]:
    """Mask secrets in errors of libraries, which have no message of ours, before they are recorded or shown.

    An error is replaced only if it, or one that it stems from, shows a secret, or says that the disk is full or that
    the user may not use a file.

    Raises:
        AccessError: a file could not be used for lack of permission.
        DiskFullError: a library could not write for lack of space.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, GraphRAGError) and (said := full_disk(error)):
            raise DiskFullError(f"The disk is full. {_FREE_SPACE} ({said})") from None
        if is_access_denied(error) and isinstance(error, OSError) and error.filename:
            raise AccessError(Path(os.fsdecode(error.filename))) from None
        if all(mask(str(one)) == str(one) for one in chain_of(error)):
            raise
        if isinstance(error, GraphRAGError) or mask(str(error)) == str(error):
            raise error from None
        shown = GraphRAGError(f"{type(error).__name__}: {error}")
        raise shown.with_traceback(error.__traceback__) from None


@contextlib.contextmanager
def full_disk_in(stage: str) -> Iterator[None]:
    """Name the stage that met a full disk, also one that the ledger met.

    Raises:
        DiskFullError: `stage` could not write for lack of space.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, DiskFullError) or not (said := full_disk(error)):
            raise
        raise DiskFullError(f"The disk is full: {stage} could not write. {_FREE_SPACE} ({said})") from None


_FREE_SPACE = "Free space and run again: what was committed stays, and the next run continues from there."
_FULL = ("no space left on device", "disk quota exceeded", "database or disk is full")


def full_disk(error: BaseException) -> str | None:
    """Return what an error says of a full disk; each library has words of its own, with the system's among them."""
    said = (str(one) for one in chain_of(error) if any(words in str(one).lower() for words in _FULL))
    return next((text.rpartition("Original error: ")[2].strip() for text in said), None)  # as DuckDB introduces it


def is_access_denied(error: BaseException) -> bool:
    """Whether the user may not use a file, or the file system cannot be written."""
    return isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def refuse_denied(path: Path, mode: int = os.R_OK) -> None:
    """Raise AccessError if this process may not use `path`, or the folder to create it in, with `mode` of os.access."""
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
        mode |= os.W_OK | os.X_OK
    if not os.access(path, mode, effective_ids=os.access in os.supports_effective_ids):
        raise AccessError(path)


def _what_is_denied(path: Path) -> str:
    """Return what cannot be done with a file, whose it is, and what to do."""
    try:
        state = path.lstat()
    except OSError:
        return "opened: this user may not enter its folder. Run as the user who owns the index."
    if not hasattr(os, "geteuid") or state.st_uid == os.geteuid():
        return "written: it is read-only. Allow writing (chmod -R u+rwX), or use an index folder on another disk."
    owner, user = _user(state.st_uid), _user(os.geteuid())
    return (
        f"used: it belongs to {owner}, and this process runs as {user}. Run as {owner}, or hand the whole data folder "
        f"over with `sudo chown -R {user} FOLDER`."
    )


def _user(uid: int) -> str:
    import pwd  # not on Windows

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and those that it stems from or during whose handling it was raised. Some chains are circles."""
    seen = set[int]()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__
