"""Publications in object storage: a file per number, and a pointer to the current one that is written last.

    <url>/graphrag-<n>.duckdb …, latest.json

The index folder is the original, and the storage follows it. A reader downloads the file that the pointer names, once,
into a folder that looks like an index folder.
"""

import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
from filelock import FileLock

from graphrag_assets.errors import StoreError
from graphrag_assets.ids import stable_id
from graphrag_assets.runtime.masking import keep_secret, without_credentials
from graphrag_assets.runtime.outgoing import shown
from graphrag_assets.store.drafts import draft_folder, move_into_place
from graphrag_assets.store.locks import lock_file
from graphrag_assets.store.publication_files import (
    current_number,
    kept_publications,
    point_to,
    publication_file,
)

log = logging.getLogger(__name__)
POINTER = "latest.json"
LOOK_AGAIN_SECONDS = 5.0
"""A reader asks the storage for a new publication at most this often."""
_CHUNK = 2**22


class _Pointer(NamedTuple):
    number: int
    bytes: int
    sha256: str

    @property
    def file(self) -> str:
        return f"graphrag-{self.number}.duckdb"


def follow_index(index_folder: Path, url: str) -> None:
    """Make the publications at `url` those of an index folder: upload the current one, point to it, delete old ones.

    Raises:
        StoreError: nothing is published, or the storage cannot be used.
    """
    files, root = _opened(url)
    with FileLock(lock_file(index_folder, "publishing")), _errors(url):  # no publication is added, chosen or deleted
        number = current_number(index_folder)
        if number is None:
            raise StoreError(f"Nothing is published in {index_folder}.")
        pointer = _read_pointer(files, root)
        if pointer is None or pointer.number != number:
            source = publication_file(index_folder, number)
            pointer = _Pointer(number, source.stat().st_size, _sha256(source))
            files.makedirs(root, exist_ok=True)
            files.put_file(str(source), f"{root}/{pointer.file}")
            files.pipe_file(f"{root}/{POINTER}", json.dumps(pointer._asdict()).encode())
        kept = {f"graphrag-{kept}.duckdb" for kept in kept_publications(index_folder)}
        for path in files.glob(f"{root}/graphrag-*.duckdb"):
            if str(path).rpartition("/")[2] not in kept:
                files.rm_file(path)


class RemotePublications:
    """The publications at a URL, as an index folder on this machine that follows them.

    Attributes:
        folder: the index folder, in the user's cache.
    """

    def __init__(self, url: str, cache: Path | None = None) -> None:
        keep_secret(url)
        self._url, self._looked = url, float("-inf")
        self.folder = (cache or _cache()) / stable_id(without_credentials(url.rstrip("/")))

    def follow(self) -> None:
        """Download the current publication, unless it is here or was looked for a moment ago.

        Raises:
            StoreError: nothing is published there; or the storage cannot be used, and nothing was downloaded before.
        """
        if time.monotonic() - self._looked < LOOK_AGAIN_SECONDS:
            return
        try:
            files, root = _opened(self._url)
            # Processes share the folder: one that is slower must not go back to what it saw before.
            with FileLock(lock_file(self.folder, "publishing")), _errors(self._url):
                files.invalidate_cache()
                self._download(files, root)
        except StoreError as error:
            if current_number(self.folder) is None:
                raise
            log.warning("%s Reading the publication that was downloaded last.", error)
        self._looked = time.monotonic()

    def _download(self, files: Any, root: str) -> None:
        pointer = _read_pointer(files, root)
        if pointer is None:
            raise StoreError(f"Nothing is published at {without_credentials(self._url)}.")
        if pointer.number == current_number(self.folder):
            return
        target = publication_file(self.folder, pointer.number)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not target.exists():
            with draft_folder(self.folder) as drafts:
                draft = drafts / target.name
                files.get_file(f"{root}/{pointer.file}", str(draft))
                if _sha256(draft) != pointer.sha256:
                    raise StoreError(f"{pointer.file} at {without_credentials(self._url)} is damaged.")
                move_into_place(draft, target)
        before = current_number(self.folder)
        point_to(self.folder, pointer.number)
        for number in kept_publications(self.folder):
            if number not in (before, pointer.number):  # readers may be about to open the one before
                publication_file(self.folder, number).unlink(missing_ok=True)


def _read_pointer(files: Any, root: str) -> _Pointer | None:
    try:
        return _Pointer(**json.loads(files.cat_file(f"{root}/{POINTER}")))
    except FileNotFoundError:
        return None


def _opened(url: str) -> tuple[Any, str]:
    try:
        files, root = fsspec.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise StoreError(
            f"{without_credentials(url)} cannot be opened: {error}. The extras s3, gcs and azure of graphrag-assets "
            "have the packages of object storage."
        ) from None
    return files, str(root).rstrip("/")


@contextlib.contextmanager
def _errors(url: str) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except Exception as error:  # file systems of object stores raise errors of their own
        first = shown(str(error).strip().partition("\n")[0])
        raise StoreError(f"{without_credentials(url)} cannot be used: {type(error).__name__}: {first}.") from error


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphrag_assets"
