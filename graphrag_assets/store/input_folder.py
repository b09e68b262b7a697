"""The input folder, local or at any URL that universal_pathlib opens: its batches, files and digests.

What belongs here: listing and reading, nothing about what a file holds. An unreadable folder is an error and never
treated as empty, because an empty folder means that every document was deleted.

Only regular files are read. A pipe or a device would block or never end. A link that leads out of the input folder
could bring in any file of the machine. Both are refused, and so is a file above the size limit.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from upath import UPath

from graphrag_assets.errors import InputError, RefusedFileError, UnreadableBatchError

_TEMPORARY_SUFFIXES = (".part", ".tmp", ".swp")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ESCAPE = re.compile(rf"\\x[0-9a-f]{{2}}|[\udc80-\udcff]|{_CONTROL.pattern}")
# Characters that Dagster rejects in a partition key.
_REFUSED = ("...", "\a", "\b", "\f", "\n", "\r", "\t", "\v", "\0")

_DEEPEST = 100
"""Levels of folders within a batch; deeper ones are not read."""
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC).timestamp()
_LATEST = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class SourceFile:
    """One file of a batch. `path` is relative to the input folder, in forward slashes; `modified` is UTC.

    `version` differs when the file may have changed although size and time are the same: on a local disk inode and
    change time, which programs that restore times (rsync -t, cp -p, tar) do not set. `refused`: why the file is not
    read. `folder`: the input folder, whose rules hold for what is read, too.
    """

    path: str
    size: int
    modified: datetime
    location: UPath = field(repr=False)
    folder: "InputFolder" = field(repr=False)
    version: str = ""
    refused: RefusedFileError | None = None
    _hashes: list[str] = field(default_factory=list, repr=False, compare=False)

    def read(self) -> bytes:
        """The file's content. Raises OSError, for a file that is refused RefusedFileError."""
        content = b"".join(self._chunks(max(self.size + 1, 2**20)))
        self._hashes[:] = [blake2b(content, digest_size=16).hexdigest()]
        return content

    def content_hash(self) -> str:
        """The hash of what `read` returned last, so that no file is read twice; before, of the content.

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
        """The content in chunks of at most `size` bytes, refused once it is too long: the file may have grown."""
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


@dataclass(frozen=True)
class InputFolder:
    """Every entry directly under `location`, a folder or a file, is a batch; its name is the partition key.

    Hidden entries (.DS_Store, .git) and temporary ones (~$x, *.part, *.tmp, *.swp) do not count. Every method
    raises InputError when the folder is missing or cannot be listed, and UnreadableBatchError when that is so for a
    folder within a batch.

    Attributes:
        location: a path or a URL.
        max_file_bytes: larger files are refused.
        outside_links: whether links that lead out of the folder are followed.
        pattern: regular expression that a file's path below the folder must contain; other files do not count.
    """

    location: str
    max_file_bytes: int = 1_000_000_000
    outside_links: bool = False
    pattern: str = ""

    def batches(self) -> list[str]:
        """The names of all batches, sorted. Names that cannot be partition keys are in `unusable_names`."""
        return [entry.name for entry in self._entries() if _name_error(entry.name) is None]

    def unusable_names(self) -> list[UnusableName]:
        """Entries that are no batch because of their names, for `index_errors`."""
        hint = "Rename the file or folder."
        return [
            UnusableName(_printable(entry.name), error, hint)
            for entry in self._entries()
            if (error := _name_error(entry.name))
        ]

    def has(self, batch: str) -> bool:
        """Whether there is an entry of that name, found without listing the others."""
        return self._entry(batch) is not None

    def files(self, batch: str) -> Iterator[SourceFile]:
        """The files of a batch, also in folders within folders, by path; none for a batch that is not there."""
        entry = self._entry(batch)
        if entry is None:
            return iter(())
        with _readable(self.location):
            above = frozenset({str(UPath(self.location).resolve())})
            found = (file for file in self._walk(entry, _printable(batch), above) if re.search(self.pattern, file.path))
            return iter(sorted(found, key=lambda file: file.path))

    def digest(self, batch: str, files: Iterable[SourceFile] | None = None) -> str:
        """A hash of the paths and contents of a batch: another one means that something in it has changed.

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

    def _entries(self) -> list[UPath]:
        root = self._root()
        with _readable(root):
            return [entry for entry in _children(root) if self._counts(entry)]

    def _counts(self, entry: UPath) -> bool:
        """Whether an entry of the folder can hold files of the pattern."""
        return bool(re.search(self.pattern, _printable(entry.name))) or entry.is_dir()

    def _entry(self, batch: str) -> UPath | None:
        root = self._root()
        with _readable(root):
            if not root.is_dir():
                _children(root)  # says what is wrong with it
            entry = root / batch
            there = not _is_ignored(batch) and "/" not in batch and (entry.exists() or entry.is_symlink())
            return entry if there and self._counts(entry) else None

    def _walk(self, entry: UPath, path: str, above: frozenset[str]) -> Iterator[SourceFile]:
        """Files at or under `entry`. `above`: the real paths of the folders around it, so that loops end."""
        if self._leads_out(entry):
            yield SourceFile(path, 0, datetime.fromtimestamp(0, UTC), entry, self, refused=_outside())
        elif len(above) > _DEEPEST and entry.is_dir():
            yield SourceFile(path, 0, datetime.fromtimestamp(0, UTC), entry, self, refused=_too_deep())
        elif not entry.is_dir():
            yield self._source_file(entry, path)
        elif (real := str(entry.resolve())) not in above:
            try:
                children = _children(entry)
            except InputError as error:
                raise UnreadableBatchError(str(error)) from error
            for child in children:
                yield from self._walk(child, f"{path}/{_printable(child.name)}", above | {real})

    def _leads_out(self, entry: UPath) -> bool:
        if self.outside_links or not entry.is_symlink():
            return False
        return not self._holds(os.path.realpath(str(entry)))

    def _holds(self, target: str) -> bool:
        """Whether a path without links is the input folder or something in it."""
        return Path(target).is_relative_to(Path(self.location).resolve())

    def open(self, location: UPath) -> BinaryIO:
        """Open a file for reading, by the rules that it was listed by: its name may lead to another file by now.

        Raises:
            RefusedFileError: it is not a regular file, or outside of the input folder.
            OSError: it cannot be opened.
        """
        if not isinstance(location, Path):
            return location.open("rb")
        stream = open(location, "rb", opener=_without_waiting)  # noqa: SIM115  (closed by the caller)
        try:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _not_regular()
            target = os.path.realpath(location)
            if not self.outside_links and not self._holds(target):
                raise _outside()
            if not os.path.samestat(status, os.stat(target)):  # noqa: PTH116
                raise RefusedFileError("it was replaced while it was opened", "The next run reads it again.")
        except BaseException:
            stream.close()
            raise
        return stream

    def too_large(self, n_bytes: int) -> RefusedFileError | None:
        """Why a file of so many bytes is not read; None if it is."""
        if n_bytes <= self.max_file_bytes:
            return None
        sizes = f"it has {n_bytes / 1e6:,.0f} MB, the limit is {self.max_file_bytes / 1e6:,.0f} MB"
        return RefusedFileError(sizes, "Split it, or raise GRAPHRAG_MAX_FILE_MB.")

    def _source_file(self, location: UPath, path: str) -> SourceFile:
        try:
            status = location.stat()
        except OSError:  # the reader of its content will say why
            return SourceFile(path, 0, datetime.fromtimestamp(0, UTC), location, self)
        version = f"{status.st_ino}:{status.st_ctime_ns}" if isinstance(location, Path) else ""
        is_special = isinstance(location, Path) and not stat.S_ISREG(status.st_mode)
        refused = _not_regular() if is_special else self.too_large(status.st_size)
        return SourceFile(path, status.st_size, _moment(status.st_mtime), location, self, version, refused)


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file; a pipe at its place does not block."""
    return os.open(path, flags | os.O_NONBLOCK)


def _outside() -> RefusedFileError:
    return RefusedFileError(
        "it is a link to something outside of the input folder",
        "Copy it into the input folder, or set GRAPHRAG_OUTSIDE_LINKS=true.",
    )


def _too_deep() -> RefusedFileError:
    return RefusedFileError(f"it is a folder more than {_DEEPEST} levels deep", "Move it closer to the input folder.")


def _not_regular() -> RefusedFileError:
    return RefusedFileError("it is not a regular file, but a pipe, a socket or a device", "Remove it.")


def _moment(seconds: float) -> datetime:
    """A time of change; one that no calendar has, of a wrong clock, is the nearest that it has."""
    return datetime.fromtimestamp(min(max(seconds, _EARLIEST), _LATEST), UTC)


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


def _name_error(name: str) -> str | None:
    refused = [part for part in _REFUSED if part in name]
    if refused:
        shown = ", ".join(repr(part) for part in refused)
        return f"the name {name!r} contains {shown}, which a partition key must not"
    if any("\udc80" <= character <= "\udcff" for character in name):
        return f"the name {_printable(name)!r} is not valid Unicode"
    return None


def _printable(name: str) -> str:
    r"""`name` with bytes that are no UTF-8, and control characters, written as \xff.

    The former exist on disk, but in no database; of the latter, different line breaks would become one. Where a name
    has such characters, or looks as if it had, its backslashes are doubled, so that no two names become one.
    """
    if _ESCAPE.search(name):
        name = name.replace("\\", "\\\\")
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", name)
