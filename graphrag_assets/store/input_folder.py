"""The input folder, local or at any URL that universal_pathlib opens: its batches, files and digests.

What belongs here: listing and reading, nothing about what a file holds. A folder that cannot be read is an
error, never an empty folder: from an empty one it would follow that every document was deleted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b

from upath import UPath

from graphrag_assets.errors import InputError

_TEMPORARY_SUFFIXES = (".part", ".tmp", ".swp")
# What Dagster refuses in a partition key.
_REFUSED = ("...", "\a", "\b", "\f", "\n", "\r", "\t", "\v", "\0")


@dataclass(frozen=True)
class SourceFile:
    """One file of a batch. `path` is relative to the input folder, in forward slashes; `modified` is UTC."""

    path: str
    size: int
    modified: datetime
    location: UPath = field(repr=False)
    _hashes: list[str] = field(default_factory=list, repr=False, compare=False)

    def read(self) -> bytes:
        """The file's content. Raises OSError."""
        content = self.location.read_bytes()
        self._hashes[:] = [blake2b(content, digest_size=16).hexdigest()]
        return content

    def content_hash(self) -> str:
        """The hash of what `read` returned last, so that no file is read twice; before, of the content.

        Raises OSError.
        """
        if not self._hashes:
            digest = blake2b(digest_size=16)
            with self.location.open("rb") as stream:
                while chunk := stream.read(2**20):
                    digest.update(chunk)
            self._hashes[:] = [digest.hexdigest()]
        return self._hashes[0]


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
    raises InputError when the folder is missing or cannot be listed.
    """

    location: str

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
        above = frozenset({str(UPath(self.location).resolve())})
        return iter(sorted(_walk(entry, _printable(batch), above), key=lambda file: file.path))

    def digest(self, batch: str, files: Iterable[SourceFile] | None = None) -> str:
        """A hash of the paths and contents of a batch: another one means that something in it has changed.

        `files`: those of the batch, where they are listed already.
        """
        digest = blake2b(digest_size=16)
        for file in self.files(batch) if files is None else files:
            try:
                content = file.content_hash()
            except OSError as error:  # it is indexed again when it can be read
                content = f"unreadable: {type(error).__name__}"
            digest.update(f"{file.path}\x1f{content}\x1e".encode())
        return digest.hexdigest()

    def _root(self) -> UPath:
        try:
            root = UPath(self.location)
            root.fs.invalidate_cache()  # object stores remember their listings for the life of the process
        except (ImportError, ValueError) as error:  # the package of the protocol is missing, or there is none
            raise InputError(
                f"The input folder {self.location} cannot be opened: {error}. It is a local path, or a URL whose "
                "package is installed, such as s3fs for s3://."
            ) from None
        return root

    def _entries(self) -> list[UPath]:
        return _children(self._root())

    def _entry(self, batch: str) -> UPath | None:
        root = self._root()
        try:
            if not root.is_dir():
                _children(root)  # says what is wrong with it
            entry = root / batch
            there = not _is_ignored(batch) and "/" not in batch and (entry.exists() or entry.is_symlink())
        except OSError as error:
            raise _unreadable(root, error) from error
        return entry if there else None


def _children(folder: UPath) -> list[UPath]:
    try:
        entries = [entry for entry in folder.iterdir() if not _is_ignored(entry.name)]
    except (FileNotFoundError, NotADirectoryError):  # file systems differ in which they raise
        if folder.exists():
            raise InputError(f"The input folder {folder} is a file. Set GRAPHRAG_INPUT to a folder.") from None
        raise InputError(f"The input folder {folder} is missing. Create it, or set GRAPHRAG_INPUT.") from None
    except OSError as error:
        raise _unreadable(folder, error) from error
    return sorted(entries, key=lambda entry: entry.name)


def _unreadable(folder: UPath, error: OSError) -> InputError:
    reason = error.strerror or type(error).__name__
    return InputError(f"The input folder {folder} cannot be read: {reason}. Check who may read it.")


def _walk(entry: UPath, path: str, above: frozenset[str]) -> Iterator[SourceFile]:
    """Files at or under `entry`. `above`: the real paths of the folders around it, so that loops end."""
    if not entry.is_dir():
        # A broken link is a file that cannot be read. A pipe or a socket would block forever: no file.
        if entry.is_file() or entry.is_symlink():
            yield _source_file(entry, path)
        return
    real = str(entry.resolve())
    if real in above:
        return
    for child in _children(entry):
        yield from _walk(child, f"{path}/{_printable(child.name)}", above | {real})


def _source_file(location: UPath, path: str) -> SourceFile:
    try:
        status = location.stat()
        size, modified = status.st_size, status.st_mtime
    except OSError:  # the reader of its content will say why
        size, modified = 0, 0.0
    return SourceFile(path, size, datetime.fromtimestamp(modified, UTC), location)


def _is_ignored(name: str) -> bool:
    return not name or name.startswith((".", "~$")) or name.lower().endswith(_TEMPORARY_SUFFIXES)


def _name_error(name: str) -> str | None:
    refused = [part for part in _REFUSED if part in name]
    if refused:
        shown = ", ".join(repr(part) for part in refused)
        return f"the name {name!r} contains {shown}, which a partition key must not"
    if _printable(name) != name:
        return f"the name {_printable(name)!r} is not valid Unicode"
    return None


def _printable(name: str) -> str:
    r"""`name` with bytes that are no UTF-8 written as \xff: such names exist on disk, but in no database."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
