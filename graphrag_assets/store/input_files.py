"""What an index is made from: batches of files, wherever they come from, and how they are read."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b, md5
from typing import BinaryIO, NamedTuple

from upath import UPath

from graphrag_assets.errors import RefusedFileError, UnreadableBatchError

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


class Listed(NamedTuple):
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
        """The names of all batches, also of those that cannot be partition keys."""

    @abstractmethod
    def has(self, batch: str) -> bool:
        """Whether there is a batch of that name, found without listing the others."""

    @abstractmethod
    def files(self, batch: str) -> Iterator[SourceFile]:
        """The files of a batch, by path; none for a batch that is not there."""

    @abstractmethod
    def open(self, location: UPath | str) -> BinaryIO:
        """Open a file for reading. Raises OSError."""

    def batches(self) -> list[str]:
        """The names of all batches, sorted. Names that cannot be partition keys are in `unusable_names`."""
        return sorted(usable(self.names()))

    def listed(self) -> Iterator[Listed]:
        """Every batch with its files."""
        for batch in self.batches():
            try:
                listed = Listed(batch, list(self.files(batch)))
            except UnreadableBatchError as error:
                listed = Listed(batch, [], str(error))
            yield listed

    def unusable_names(self) -> list[UnusableName]:
        """What is no batch because of its name, for `index_errors`."""
        return unusable(self.names(), "Rename the file or folder.")

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

    def too_large(self, n_bytes: int) -> RefusedFileError | None:
        """Why a file of so many bytes is not read; None if it is."""
        if n_bytes <= self.max_file_bytes:
            return None
        sizes = f"it has {n_bytes / 1e6:,.0f} MB, the limit is {self.max_file_bytes / 1e6:,.0f} MB"
        return RefusedFileError(sizes, "Split it.")


def usable(names: Iterable[str]) -> list[str]:
    """The names that can be partition keys."""
    return [name for name in names if _name_error(name) is None]


def unusable(names: Iterable[str], hint: str) -> list[UnusableName]:
    """The names that cannot be partition keys; `hint`: what to do about them."""
    return [UnusableName(printable(name), error, hint) for name in names if (error := _name_error(name))]


def hashed_name(key: str, n: int) -> str:
    """The name of one of `n` batches, by the MD5 of a key."""
    number = int(md5(key.encode(), usedforsecurity=False).hexdigest()[:8], 16) % n
    return str(number).zfill(len(str(n - 1)))


def _name_error(name: str) -> str | None:
    refused = [part for part in _REFUSED if part in name]
    if refused:
        shown = ", ".join(repr(part) for part in refused)
        return f"the name {name!r} contains {shown}, which a partition key must not"
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
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", name)
