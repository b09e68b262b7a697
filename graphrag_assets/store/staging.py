"""Staging: what one machine has extracted from a batch, until the machine with the working database commits it.

    <staging>/<batch>/<revision>/<table>.parquet …, manifest.json

A revision is written by one process, under a name of its own. Its manifest is written last and holds the number of rows
and the hash of each file, so a revision is either complete or not there, on file systems without rename too. Nothing
compares clocks of different machines.
"""

import contextlib
import io
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import fsspec
import polars as pl

from graphrag_assets.errors import StagingError
from graphrag_assets.ids import stable_id
from graphrag_assets.runtime.masking import keep_secret, without_credentials

MANIFEST = "manifest.json"
_READABLE = 40
_DRAFT = ".part"
_MACHINES = "machines"
SHARDS = "shards"
"""The folder of work that machines share, see `indexing.shards`."""


class StagedTable(NamedTuple):
    """The file of one table: its number of rows, and the SHA-256 of its bytes."""

    rows: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a revision holds and what it was made with.

    Attributes:
        batch: the name of the batch.
        digest: the batch's files and settings, as `batch_state.digest`.
        settings: every setting that determines the rows, by name; versions of the code are among them.
        options: the settings that were given to the batch itself.
        run_id: the run that has extracted it.
        seconds, usage: of extracting, as in index_runs.
        tables: the files, by table.
    """

    batch: str
    digest: str
    settings: Mapping[str, str]
    options: Mapping[str, str]
    run_id: str
    seconds: float
    usage: Mapping[str, Mapping[str, float]]
    tables: Mapping[str, StagedTable] = field(default_factory=dict)

    @property
    def n_errors(self) -> int:
        """How many files, rows and text units could not be used."""
        return self.tables["index_errors"].rows

    def to_json(self) -> bytes:
        values = asdict(self) | {"tables": {name: table._asdict() for name, table in self.tables.items()}}
        return json.dumps(values, indent=1, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, content: bytes) -> "Manifest":
        """Raises ValueError, KeyError or TypeError for what is no manifest."""
        values: dict[str, Any] = json.loads(content)
        tables = {name: StagedTable(**table) for name, table in values.pop("tables").items()}
        return cls(**values, tables=tables)


class Staged(NamedTuple):
    """A complete revision: the folder that holds it, and its manifest."""

    folder: str
    manifest: Manifest


class Staging:
    """The staging area at a path or any URL that fsspec opens. Each index needs one of its own."""

    def __init__(self, location: str) -> None:
        """Raises StagingError for a location that no installed package opens."""
        keep_secret(location if "://" in location else None)
        self._shown = without_credentials(location)
        try:
            self._files, root = fsspec.url_to_fs(location)
        except (ImportError, ValueError) as error:
            raise StagingError(
                f"The staging area {self._shown} cannot be opened: {error}. It is a local path, or a URL whose package "
                "is installed: the extras s3, gcs and azure of graphrag-assets have them."
            ) from None
        self._root = str(root).rstrip("/")

    def write(self, frames: Mapping[str, pl.DataFrame], manifest: Manifest) -> Staged:
        """Write a revision of a batch; `manifest.tables` is made from `frames`."""
        folder = f"{self._folder(manifest.batch)}/{uuid.uuid4().hex}"
        files = {name: to_parquet(frame) for name, frame in frames.items()}
        tables = {
            name: StagedTable(frames[name].height, sha256(content).hexdigest()) for name, content in files.items()
        }
        manifest = replace(manifest, tables=tables)
        with self._errors():
            self._files.makedirs(folder, exist_ok=True)
            for name, content in files.items():
                self._files.pipe_file(f"{folder}/{name}.parquet", content)
            self._write_atomically(f"{folder}/{MANIFEST}", manifest.to_json())
        return Staged(folder, manifest)

    def revisions(self, batch: str | None = None) -> list[Staged]:
        """The complete revisions of a batch, or of all batches, in the order of their names."""
        with self._errors():
            self._files.invalidate_cache()  # object stores remember their listings for the life of the process
            found = self._files.glob(f"{self._folder(batch) if batch else f'{self._root}/*'}/*/{MANIFEST}")
            manifests = [(str(path), self._content(str(path))) for path in sorted(found)]
        complete = []
        for path, content in manifests:
            if content is not None:  # None: swept since it was listed
                try:
                    complete.append(Staged(path.rpartition("/")[0], Manifest.from_json(content)))
                except (ValueError, KeyError, TypeError) as error:
                    raise StagingError(
                        f"{path} is not a manifest that this version can read ({error}). Delete its folder, and run "
                        "the same version of graphrag-assets on all machines."
                    ) from None
        return complete

    def read(self, staged: Staged) -> dict[str, pl.DataFrame] | None:
        """The tables of a revision; None if a file of it is missing or is not the one that was written."""
        frames = {}
        with self._errors():
            for name, table in staged.manifest.tables.items():
                content = self._content(f"{staged.folder}/{name}.parquet")
                if content is None or sha256(content).hexdigest() != table.sha256:
                    return None
                frames[name] = from_parquet(content)
        return frames

    def files(self, batch: str | None = None) -> list[str]:
        """All files of a batch, or of all batches, those of incomplete revisions too; manifests first."""
        with self._errors():
            self._files.invalidate_cache()
            found = self._files.find(self._folder(batch) if batch else self._root)
        staged = [path for path in map(str, found) if not path.startswith(f"{self._root}/{_MACHINES}/")]
        return sorted(staged, key=lambda path: not path.endswith(f"/{MANIFEST}"))

    def sweep(self, batch: str | None = None) -> None:
        """Delete all that is staged for a batch, or for all.

        Manifests are deleted first: what is left of a killed sweep does not count.
        """
        folder = self._folder(batch) if batch else f"{self._root}/*-*"
        with self._errors():
            self.remove(path.removeprefix(f"{self._root}/") for path in self.files(batch))
            with contextlib.suppress(OSError):  # the empty folders, where the file system has folders
                self._files.rm(folder, recursive=True)

    def discard(self, files: Iterable[str]) -> None:
        """Delete these files of batches, see `files`, and the folders that are empty then."""
        paths = list(files)
        self.remove(path.removeprefix(f"{self._root}/") for path in paths)
        revisions = {path.rpartition("/")[0] for path in paths}
        with self._errors():
            for folder in (*revisions, *{revision.rpartition("/")[0] for revision in revisions}):
                with contextlib.suppress(OSError):  # not empty, or a file system without folders
                    self._files.rmdir(folder)

    def declare(self, machine: str, state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Leave what describes this machine for the others to compare; returns that of all machines, by name."""
        self.put(f"{_MACHINES}/{quote(machine, safe='')}.json", json.dumps(state).encode())
        found = {name: self.get(name) for name in self.names(_MACHINES)}
        return {_machine_of(name): json.loads(content) for name, content in found.items() if content}

    def put(self, name: str, content: bytes) -> None:
        """Write a file that is no part of a batch; others see it when it is complete."""
        path = f"{self._root}/{name}"
        with self._errors():
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._write_atomically(path, content)

    def get(self, name: str) -> bytes | None:
        """The content of a file; None if the file does not exist."""
        with self._errors():
            return self._content(f"{self._root}/{name}")

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder and the folders in it."""
        with self._errors():
            self._files.invalidate_cache()
            found = self._files.find(f"{self._root}/{folder}")
        return sorted(path.removeprefix(f"{self._root}/") for path in map(str, found) if not path.endswith(_DRAFT))

    def remove(self, names: Iterable[str]) -> None:
        """Delete files; it does not matter if they are gone."""
        with self._errors():
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # another process deletes them, too
                    self._files.rm_file(f"{self._root}/{name}")

    def _folder(self, batch: str) -> str:
        """The folder of a batch, whose name may have any character and length."""
        return f"{self._root}/{quote(batch[:_READABLE], safe='')}-{stable_id(batch)[:12]}"

    def _content(self, path: str) -> bytes | None:
        try:
            content: bytes = self._files.cat_file(path)
        except FileNotFoundError:
            return None
        return content

    def _write_atomically(self, path: str, content: bytes) -> None:
        """Write a file that is never seen half: an object appears when it is complete, a file when it is renamed."""
        if "file" not in _protocols(self._files):
            self._files.pipe_file(path, content)
            return
        draft = f"{path}.{uuid.uuid4().hex}{_DRAFT}"  # two processes may write the same
        self._files.pipe_file(draft, content)
        self._files.mv(draft, path)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (StagingError, KeyboardInterrupt):
            raise
        except Exception as error:  # file systems of object stores raise errors of their own
            first = str(error).strip().partition("\n")[0]
            raise StagingError(
                f"The staging area {self._shown} cannot be used: {type(error).__name__}: {first}. Check "
                "GRAPHRAG_STAGING, the network and this machine's permissions; `graphrag-assets doctor cluster` "
                "tries them."
            ) from error


def to_parquet(frame: pl.DataFrame) -> bytes:
    """The frame as a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def from_parquet(content: bytes) -> pl.DataFrame:
    """The frame of a Parquet file."""
    return pl.read_parquet(io.BytesIO(content))


def _machine_of(path: str) -> str:
    return unquote(path.rpartition("/")[2].removesuffix(".json"))


def _protocols(files: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    return (files.protocol,) if isinstance(files.protocol, str) else tuple(files.protocol)
