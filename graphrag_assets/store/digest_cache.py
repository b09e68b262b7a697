"""Caches the digests of batches by their files' sizes, times and versions, so that unchanged files are not read.

A file written at the moment it is read may change again without a new time, so recent files are not cached (git calls
such entries racy). Losing the cache only costs time.
"""

import json
import math
import time
from pathlib import Path

from graphrag_assets.ids import stable_id
from graphrag_assets.store.index_files import replacing
from graphrag_assets.store.input_files import Input, SourceFile

NAME = "input_digests.json"
RACY_SECONDS = 2.0


class DigestCache:
    """The cached digests of the input folder at `location`, in the file at `path`: signature and digest by batch."""

    def __init__(self, path: Path, location: str) -> None:
        self._path, self._location = path, location
        self._stored, self._used = _read(path, location), dict[str, tuple[str, str]]()

    def digest(self, folder: Input, batch: str, files: list[SourceFile], read_contents: bool = False) -> str:
        """Return the digest of a batch that has these files; `read_contents`: whether or not it is cached."""
        signature = stable_id(*(part for file in files for part in (file.path, file.size, file.modified, file.version)))
        cached, digest = self._stored.get(batch, ("", ""))
        if read_contents or cached != signature:
            digest = folder.digest(batch, files)
        if age(files) > RACY_SECONDS:
            self._used[batch] = signature, digest
        return digest

    def save(self) -> None:
        """Write the digests used, if they differ from those in the file; unused ones are dropped."""
        if self._used != self._stored:
            with replacing(self._path) as draft:
                draft.write_text(json.dumps({"location": self._location, "batches": self._used}), encoding="utf-8")


def age(files: list[SourceFile]) -> float:
    """Return seconds since a file was last modified.

    A file of the next minute, by a clock that is ahead, was modified now; a later time says nothing of its file.
    """
    now = time.time()
    ages = (
        max(now - file.modified.timestamp(), 0.0)
        for file in files
        if file.modified and file.modified.timestamp() < now + 60
    )
    return min(ages, default=math.inf)


def _read(path: Path, location: str) -> dict[str, tuple[str, str]]:
    """Return the digests in the file; none if it is missing, broken, or of another input folder."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        entries = stored["batches"] if stored["location"] == location else {}
        return {batch: (signature, digest) for batch, (signature, digest) in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
