"""What an index is made from: batches of files, and the input folder, local or at any URL that universal_pathlib opens.

What belongs here: listing and reading, nothing about what a file holds. An unreadable folder is an error and never
treated as empty, because an empty folder means that every document was deleted.

Only regular files are read. A pipe or a device would block or never end. A link that leads out of the input folder
could bring in any file of the machine. Both are refused, and so is a file above the size limit.
"""

import contextlib
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b, md5
from pathlib import Path
from typing import BinaryIO, NamedTuple

from upath import UPath

from graphrag_assets.errors import InputError, RefusedFileError, UnreadableBatchError

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ESCAPE = re.compile(rf"\\x[0-9a-f]{{2}}|[\udc80-\udcff]|{CONTROL.pattern}")


@dataclass(frozen=True)
class SourceFile:
    """One file of a batch. `path` is relative to the input folder, in forward slashes; `modified` is UTC.

    `modified` is None where nobody knows.

    `version` differs when the file may have changed although size and time are the same: on a local disk inode and
    change time, which programs that restore times (rsync -t, cp -p, tar) do not set. `refused`: why the file is not
    read. `folder`: the input, which opens `location`.
    """

    path: str
    size: int
    modified: datetime | None
    location: UPath | str = field(repr=False)
    folder: "Input" = field(repr=False)
    version: str = ""
    refused: RefusedFileError | None = None
    _hashes: list[str] = field(default_factory=list, repr=False, compare=False)

    def read(self) -> bytes:
        """Return the file's content. Raises OSError, for a file that is refused RefusedFileError."""
        content = b"".join(self._chunks(max(self.size + 1, 2**20)))
        self._hashes[:] = [blake2b(content, digest_size=16).hexdigest()]
        return content

    def content_hash(self) -> str:
        """Return the hash of what `read` returned last, so that no file is read twice; before, of the content.

        Raises OSError.
        """
        if self.refused:
            raise self.refused
        if not self._hashes:
            digest = blake2b(digest_size=16)
            for chunk in self._chunks(2**20):
                digest.update(chunk)
            self._hashes[:] = [digest.hexdigest()]
        return self._hashes[0]

    def _chunks(self, size: int) -> Iterator[bytes]:
        """Yield the content in chunks of at most `size` bytes, refused once it is too long: the file may have grown."""
        if self.refused:
            raise self.refused
        n_read = 0
        with self.folder.open(self.location) as stream:
            while chunk := stream.read(size):
                n_read += len(chunk)
                if too_large := self.folder.too_large(n_read):
                    raise too_large
                yield chunk


class BatchFiles(NamedTuple):
    """A batch with its files; where it cannot be indexed, none, but why not, and what to do about it."""

    batch: str
    files: list[SourceFile]
    error: str = ""
    hint: str = ""


class Input(ABC):
    """Batches of files by name, which is the partition key.

    Every method raises InputError when the input cannot be read, and UnreadableBatchError when that is so for a batch.
    """

    max_file_bytes: int

    @abstractmethod
    def list_batches(self) -> Iterator[BatchFiles]:
        """Yield every batch, by name; with an error those that cannot be listed, and names that no batch can have."""

    @abstractmethod
    def files(self, batch: str) -> list[SourceFile]:
        """Return the files of a batch, by path; none for a batch that is not there."""

    @abstractmethod
    def open(self, location: UPath | str) -> BinaryIO:
        """Open a file for reading. Raises OSError."""

    def digest(self, batch: str, files: Iterable[SourceFile]) -> str:
        """Return a hash of the paths and contents of a batch: another one means that something in it has changed."""
        digest = blake2b(digest_size=16)
        for file in files:
            try:
                content = file.content_hash()
            except RefusedFileError as error:  # it is indexed again when it is another file
                content = f"refused: {error} {file.size} {file.version}"
            except OSError as error:  # it is indexed again when it can be read
                content = f"unreadable: {type(error).__name__}"
            digest.update(f"{file.path}\x1f{content}\x1e".encode())
        return digest.hexdigest()

    def too_large(self, n_bytes: int) -> RefusedFileError | None:
        """Why a file of so many bytes is not read; None if it is."""
        if n_bytes <= self.max_file_bytes:
            return None
        sizes = f"it has {n_bytes / 1e6:,.0f} MB, the limit is {self.max_file_bytes / 1e6:,.0f} MB"
        return RefusedFileError(sizes, "Split it.")


def hashed_name(key: str, n: int) -> str:
    """Return the name of one of `n` batches, by the MD5 of a key."""
    number = int(md5(key.encode(), usedforsecurity=False).hexdigest()[:8], 16) % n
    return str(number).zfill(len(str(n - 1)))


def name_error(name: str) -> str:
    """Why a name cannot be a batch's, which Dagster has for a partition key; empty if it can."""
    refused = CONTROL.search(name) or re.search(r"\.\.\.", name)
    return f"the name {name!r} contains {refused[0]!r}, which a partition key must not" if refused else ""


def printable(name: str) -> str:
    r"""`name` with bytes that are no UTF-8, and control characters, written as \xff.

    The former exist on disk, but in no database; of the latter, different line breaks would become one. Where a name
    has such characters, or looks as if it had, its backslashes are doubled, so that no two names become one.
    """
    if _ESCAPE.search(name):
        name = name.replace("\\", "\\\\")
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", name)


_TEMPORARY_SUFFIXES = (".part", ".tmp", ".swp")

_UNREADABLE = "The batch stays as it was indexed until all of its folders can be listed. Check their permissions."
_DEEPEST = 100
"""Levels of folders within a batch; deeper ones are not read."""
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC).timestamp()
_LATEST = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


class _Entry(NamedTuple):
    """An entry below the input folder that is no folder; `refused`: why it is not read."""

    path: str
    location: UPath
    refused: RefusedFileError | None = None


@dataclass(frozen=True)
class InputFolder(Input):
    """A folder of documents. A batch is an entry directly under it, a folder or a file, unless `batch_by` says else.

    Hidden entries (.DS_Store, .git) and temporary ones (~$x, *.part, *.tmp, *.swp) do not count. A folder that cannot
    be listed, or a folder within a batch, is an error.

    Attributes:
        location: a path or a URL.
        max_file_bytes: larger files are refused.
        pattern: regular expression that a file's path below the folder must contain; other files do not count.
        batch_by: entry; depth=N: an entry N levels below the folder; hash=N: one of N sets of files, by their paths.
    """

    location: str
    max_file_bytes: int = 1_000_000_000
    pattern: str = ""
    batch_by: str = "entry"

    def list_batches(self) -> Iterator[BatchFiles]:
        batches, errors = dict[str, list[_Entry]](), dict[str, str]()
        for top in self._tops():
            try:
                for entry in self._entries(top):
                    batches.setdefault(self._batch_of(entry.path), []).append(entry)
            except UnreadableBatchError as problem:
                if self.batch_by not in ("entry", "depth=1"):  # nobody knows which batches it concerns
                    raise
                name = printable(top.name)
                batches[name], errors[name] = [], str(problem)
        for batch, entries in sorted(batches.items()):
            if error := name_error(batch):
                yield BatchFiles(batch, [], error, "Rename the file or folder.")
            elif batch in errors:
                yield BatchFiles(batch, [], errors[batch], _UNREADABLE)
            else:
                yield BatchFiles(batch, self._source_files(entries))

    def files(self, batch: str) -> list[SourceFile]:
        with _readable(self.location):
            entries = [entry for top in self._tops(batch) for entry in self._entries(top)]
            return self._source_files(entry for entry in entries if self._batch_of(entry.path) == batch)

    def _batch_of(self, path: str) -> str:
        """Return the batch of a file by its path."""
        kind, _, number = self.batch_by.partition("=")
        return hashed_name(path, int(number)) if kind == "hash" else "/".join(path.split("/")[: int(number or 1)])

    def _tops(self, batch: str | None = None) -> list[UPath]:
        """Return the entries of the folder, or those that can hold files of a batch."""
        try:
            with _readable(self.location):
                root = UPath(self.location)
                root.fs.invalidate_cache()  # object stores remember their listings for the life of the process
                name = batch.split("/")[0] if batch else ""
                if name and not self.batch_by.startswith("hash") and not _is_ignored(name):
                    top = root / name
                    if top.exists() or top.is_symlink():
                        return [top]
                    return [top for top in _children(root) if printable(top.name) == name]  # or none: it is deleted
                return _children(root)
        except (ImportError, ValueError) as error:  # the package of the protocol is missing, or there is none
            raise InputError(
                f"The input folder {self.location} cannot be opened: {error}. It is a local path, or a URL whose "
                "package is installed, such as s3fs for s3://."
            ) from None

    def _entries(self, top: UPath) -> Iterator[_Entry]:
        """Yield what counts at or under an entry of the folder."""
        for entry in self._walk(top, printable(top.name), frozenset({str(UPath(self.location).resolve())})):
            if re.search(self.pattern, entry.path):
                yield entry

    def _walk(self, entry: UPath, path: str, above: frozenset[str]) -> Iterator[_Entry]:
        """Yield what is at or under `entry`. `above`: the real paths of the folders around it, so that loops end."""
        if entry.is_symlink() and not self._holds(os.path.realpath(str(entry))):
            yield _Entry(path, entry, _outside())
        elif len(above) > _DEEPEST and entry.is_dir():
            reason = f"it is a folder more than {_DEEPEST} levels deep"
            yield _Entry(path, entry, RefusedFileError(reason, "Move it closer to the input folder."))
        elif not entry.is_dir():
            yield _Entry(path, entry)
        elif (real := str(entry.resolve())) not in above:
            try:
                children = _children(entry)
            except InputError as error:
                raise UnreadableBatchError(str(error)) from error
            for child in children:
                yield from self._walk(child, f"{path}/{printable(child.name)}", above | {real})

    def _holds(self, target: str) -> bool:
        """Whether a path without links is the input folder or something in it."""
        return Path(target).is_relative_to(Path(self.location).resolve())

    def open(self, location: UPath | str) -> BinaryIO:
        """Open a file for reading, by the rules that it was listed by: its name may lead to another file by now."""
        if not isinstance(location, Path):
            return UPath(location).open("rb")
        # A pipe at its place does not block. The caller closes it.
        stream = open(location, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))  # noqa: SIM115
        try:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _not_regular()
            target = os.path.realpath(location)
            if not self._holds(target):
                raise _outside()
            if not os.path.samestat(status, os.stat(target)):  # noqa: PTH116
                raise RefusedFileError("it was replaced while it was opened", "The next run reads it again.")
        except BaseException:
            stream.close()
            raise
        return stream

    def _source_files(self, entries: Iterable[_Entry]) -> list[SourceFile]:
        return [self._source_file(entry) for entry in sorted(entries, key=lambda entry: entry.path)]

    def _source_file(self, entry: _Entry) -> SourceFile:
        path, location, refused = entry
        try:
            status = None if refused else location.stat()
        except OSError:  # the reader of its content will say why
            status = None
        if status is None:
            return SourceFile(path, 0, datetime.fromtimestamp(0, UTC), location, self, refused=refused)
        version = f"{status.st_ino}:{status.st_ctime_ns}" if isinstance(location, Path) else ""
        is_special = isinstance(location, Path) and not stat.S_ISREG(status.st_mode)
        refused = _not_regular() if is_special else self.too_large(status.st_size)
        # A time that no calendar has, of a wrong clock, is the nearest that it has.
        modified = datetime.fromtimestamp(min(max(status.st_mtime, _EARLIEST), _LATEST), UTC)
        return SourceFile(path, status.st_size, modified, location, self, version, refused)


def _outside() -> RefusedFileError:
    return RefusedFileError("it is a link to something outside of the input folder", "Copy it into the input folder.")


def _not_regular() -> RefusedFileError:
    return RefusedFileError("it is not a regular file, but a pipe, a socket or a device", "Remove it.")


def _children(folder: UPath) -> list[UPath]:
    with _readable(folder):
        try:
            entries = [entry for entry in folder.iterdir() if not _is_ignored(entry.name)]
        except (FileNotFoundError, NotADirectoryError):  # file systems differ in which they raise
            if folder.exists():
                raise InputError(f"The input folder {folder} is a file. Set GRAPHRAG_INPUT to a folder.") from None
            raise InputError(f"The input folder {folder} is missing. Create it, or set GRAPHRAG_INPUT.") from None
        return sorted(entries, key=lambda entry: entry.name)


@contextlib.contextmanager
def _readable(folder: UPath | str) -> Iterator[None]:
    """Turn what a file system raises into an InputError: those of networks raise errors of their own."""
    try:
        yield
    except (InputError, ImportError, ValueError):
        raise
    except PermissionError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"The input folder {folder} cannot be read: {reason}. Check its permissions.") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        remedy = " Check the address, the network and that the server is up." if "://" in str(folder) else ""
        raise InputError(f"The input folder {folder} cannot be read: {reason.rstrip('.')}.{remedy}") from error


def _is_ignored(name: str) -> bool:
    return not name or name.startswith((".", "~$")) or name.lower().endswith(_TEMPORARY_SUFFIXES)
