"""Caches the digests of batches by their files' sizes, times and versions, so that unchanged files are not read.

A file written at the moment it is read may change again without a new time, so recent files are not cached (git calls
such entries racy). Losing the cache only costs time.
"""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from graphrag_assets.ids import stable_id
from graphrag_assets.store.index_files import replacing
from graphrag_assets.store.input_files import Input, SourceFile

NAME = "input_digests.json"
RACY_SECONDS = 2.0


class _Entry(NamedTuple):
    """What is known of a batch: the signature of its files, when it was first seen (Unix time), and the digest.

    The digest is None while the files are too recent to be cached.
    """

    signature: str
    first_seen: float
    digest: str | None


@dataclass
class DigestCache:
    """The cached digests of an input folder, stored in the file at `path`."""

    path: Path
    location: str
    _stored: dict[str, _Entry] = field(default_factory=dict)
    _used: dict[str, _Entry] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, location: str) -> "DigestCache":
        """Return the cache of the input folder at `location`; empty if the file is missing or broken."""
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            entries = stored["batches"] if stored["location"] == location else {}
            return cls(path, location, {batch: _Entry(*entry) for batch, entry in entries.items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(path, location)

    def digest(self, folder: Input, batch: str, files: list[SourceFile], read_contents: bool = False) -> str:
        """Return the digest of a batch that has these files; `read_contents`: whether or not it is cached."""
        signature = stable_id(*(part for file in files for part in (file.path, file.size, file.modified, file.version)))
        entry = self._stored.get(batch)
        if entry is None or entry.signature != signature:
            entry = _Entry(signature, time.time(), None)
        self._used[batch] = entry
        cacheable = self.age(batch, files) > RACY_SECONDS
        digest = (None if read_contents else entry.digest) or folder.digest(batch, files)
        self._used[batch] = entry._replace(digest=digest if cacheable else None)
        return digest

    def age(self, batch: str, files: list[SourceFile]) -> float:
        """Seconds since the newest file was modified, or, if that is longer, since this state was first seen.

        A time in the future, from a wrong clock, says nothing: what counts is when the files were first seen. `digest`
        must have been called for the batch.
        """
        newest = max((file.modified.timestamp() for file in files if file.modified), default=0.0)
        return time.time() - min(newest, self._used[batch].first_seen)

    def save(self) -> None:
        """Write the digests used since `load`, if they differ; unused ones are dropped."""
        if self._used == self._stored:
            return
        with replacing(self.path) as draft:
            draft.write_text(json.dumps({"location": self.location, "batches": self._used}), encoding="utf-8")
        self._stored = dict(self._used)
