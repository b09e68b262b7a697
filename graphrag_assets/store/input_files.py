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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b, md5
from pathlib import Path
from typing import BinaryIO, NamedTuple

from upath import UPath

from graphrag_assets.errors import InputError, RefusedFileError, UnreadableBatchError

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ESCAPE = re.compile(rf"\\x[0-9a-f]{{2}}|[\udc80-\udcff]|{CONTROL.pattern}")
# Characters that Dagster rejects in a partition key.
_REFUSED = ("...", "\a", "\b", "\f", "\n", "\r", "\t", "\v", "\0")


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


@dataclass(frozen=True)
class UnusableName:
    """An entry of the input folder whose name cannot be a batch's."""

    name: str
    error: str
    hint: str


class BatchFiles(NamedTuple):
    """A batch with its files; where they cannot be listed, none, and why not."""

    batch: str
    files: list[SourceFile]
    error: str = ""


class Input(ABC):
    """Batches of files by name, which is the partition key.

    Every method raises InputError when the input cannot be read, and UnreadableBatchError when that is so for a batch.
    """

    max_file_bytes: int

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all batches, also of those that cannot be partition keys."""

    @abstractmethod
    def has(self, batch: str) -> bool:
        """Whether there is a batch of that name, found without listing the others."""

    @abstractmethod
    def files(self, batch: str) -> Iterator[SourceFile]:
        """Return the files of a batch, by path; none for a batch that is not there."""

    @abstractmethod
    def open(self, location: UPath | str) -> BinaryIO:
        """Open a file for reading. Raises OSError."""

    def batches(self) -> list[str]:
        """Return the names of all batches, sorted. Names that cannot be partition keys are in `unusable_names`."""
        return sorted(usable(self.names()))

    def listed(self) -> Iterator[BatchFiles]:
        """Every batch with its files."""
        for batch in self.batches():
            try:
                yield BatchFiles(batch, list(self.files(batch)))
            except UnreadableBatchError as error:
                yield BatchFiles(batch, [], str(error))

    def unusable_names(self) -> list[UnusableName]:
        """Return what is no batch because of its name, for `index_errors`."""
        return unusable(self.names(), "Rename the file or folder.")

    def digest(self, batch: str, files: Iterable[SourceFile] | None = None) -> str:
        """Return a hash of the paths and contents of a batch: another one means that something in it has changed.

        `files`: those of the batch, where they are listed already.
        """
        digest = blake2b(digest_size=16)
        for file in self.files(batch) if files is None else files:
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


def usable(names: Iterable[str]) -> list[str]:
    """Return the names that can be partition keys."""
    return [name for name in names if _name_error(name) is None]


def unusable(names: Iterable[str], hint: str) -> list[UnusableName]:
    """Return the names that cannot be partition keys; `hint`: what to do about them."""
    return [UnusableName(printable(name), error, hint) for name in names if (error := _name_error(name))]


def hashed_name(key: str, n: int) -> str:
    """Return the name of one of `n` batches, by the MD5 of a key."""
    number = int(md5(key.encode(), usedforsecurity=False).hexdigest()[:8], 16) % n
    return str(number).zfill(len(str(n - 1)))


def _name_error(name: str) -> str | None:
    refused = [part for part in _REFUSED if part in name]
    if refused:
        parts = ", ".join(repr(part) for part in refused)
        return f"the name {name!r} contains {parts}, which a partition key must not"
    if any("\udc80" <= character <= "\udcff" for character in name):
        return f"the name {printable(name)!r} is not valid Unicode"
    return None


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

_DEEPEST = 100
"""Levels of folders within a batch; deeper ones are not read."""
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC).timestamp()
_LATEST = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


class _Found(NamedTuple):
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

    def names(self) -> list[str]:
        if self._batch_of is None:
            return [entry.name for entry in self._entries()]
        return sorted({self._batch_of(file.path) for file in self._found()})

    def has(self, batch: str) -> bool:
        return bool(self._entries(batch)) if self._batch_of is None else any(self._found(batch))

    def files(self, batch: str) -> Iterator[SourceFile]:
        with _readable(self.location):
            return iter([self._source_file(one) for one in sorted(self._found(batch), key=lambda one: one.path)])

    def listed(self) -> Iterator[BatchFiles]:
        if self._batch_of is None:
            yield from super().listed()
            return
        batches: dict[str, list[_Found]] = {}
        for one in sorted(self._found(), key=lambda one: one.path):
            batches.setdefault(self._batch_of(one.path), []).append(one)
        for batch in sorted(usable(batches)):
            yield BatchFiles(batch, [self._source_file(one) for one in batches[batch]])

    @property
    def _batch_of(self) -> Callable[[str], str] | None:
        """The batch of a file by its path; None where entries are batches."""
        kind, _, number = self.batch_by.partition("=")
        n = int(number or 0)
        by_path: dict[str, Callable[[str], str]] = {
            "depth": lambda path: "/".join(path.split("/")[:n]),
            "hash": lambda path: hashed_name(path, n),
        }
        return by_path.get(kind)

    def _found(self, batch: str | None = None) -> Iterator[_Found]:
        """Yield what is in the folder at any depth and counts, or of it what is in a batch."""
        batch_of, above = self._batch_of, frozenset({str(UPath(self.location).resolve())})
        for entry in self._entries(None if batch_of else batch):
            for file in self._walk(entry, printable(entry.name), above):
                is_in = batch is None or batch_of is None or batch_of(file.path) == batch
                if is_in and re.search(self.pattern, file.path):
                    yield file

    def _root(self) -> UPath:
        try:
            with _readable(self.location):
                root = UPath(self.location)
                root.fs.invalidate_cache()  # object stores remember their listings for the life of the process
        except (ImportError, ValueError) as error:  # the package of the protocol is missing, or there is none
            raise InputError(
                f"The input folder {self.location} cannot be opened: {error}. It is a local path, or a URL whose "
                "package is installed, such as s3fs for s3://."
            ) from None
        return root

    def _entries(self, name: str | None = None) -> list[UPath]:
        """Return the entries of the folder that can hold files of the pattern, or the one of this name."""
        root = self._root()
        with _readable(root):
            if name is None or not root.is_dir():
                entries = _children(root)  # which says what is wrong with it
            else:
                entry = root / name
                is_there = not _is_ignored(name) and "/" not in name and (entry.exists() or entry.is_symlink())
                entries = [entry] if is_there else []
            return [entry for entry in entries if re.search(self.pattern, printable(entry.name)) or entry.is_dir()]

    def _walk(self, entry: UPath, path: str, above: frozenset[str]) -> Iterator[_Found]:
        """Yield what is at or under `entry`. `above`: the real paths of the folders around it, so that loops end."""
        if entry.is_symlink() and not self._holds(os.path.realpath(str(entry))):
            yield _Found(path, entry, _outside())
        elif len(above) > _DEEPEST and entry.is_dir():
            reason = f"it is a folder more than {_DEEPEST} levels deep"
            yield _Found(path, entry, RefusedFileError(reason, "Move it closer to the input folder."))
        elif not entry.is_dir():
            yield _Found(path, entry)
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

    def _source_file(self, entry: _Found) -> SourceFile:
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
