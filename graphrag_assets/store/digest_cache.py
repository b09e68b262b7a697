"""Caches the digests of batches by the sizes and times of their files, so that unchanged files are not read.

A file written at the moment it is read may change again without a new time, so recent files are not cached (git calls
such entries racy). Losing the cache only costs time.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from graphrag_assets.store.input_folder import InputFolder, SourceFile

NAME = "input_digests.json"
RACY_SECONDS = 2.0


@dataclass
class DigestCache:
    """The cached digests of an input folder, stored in the file at `path`."""

    path: Path
    location: str
    _known: dict[str, list[str]] = field(default_factory=dict)
    _used: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, location: str) -> "DigestCache":
        """The cache of the input folder at `location`; empty if the file is missing or broken."""
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            known = dict(stored["batches"]) if stored["location"] == location else {}
        except (OSError, ValueError, KeyError, TypeError):
            known = {}
        return cls(path, location, known)

    def digest(self, folder: InputFolder, batch: str, files: list[SourceFile]) -> str:
        """The digest of a batch that has these files."""
        signature = _signature(files)
        known = self._known.get(batch)
        if known and known[0] == signature:
            self._used[batch] = known
            return known[1]
        digest = folder.digest(batch, files)
        if all(0 < file.modified.timestamp() < time.time() - RACY_SECONDS for file in files):
            self._used[batch] = [signature, digest]
        return digest

    def save(self) -> None:
        """Write the digests used since `load`, if they differ; unused ones are dropped."""
        if self._used == self._known:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        content: Mapping[str, object] = {"location": self.location, "batches": self._used}
        draft.write_text(json.dumps(content), encoding="utf-8")
        draft.replace(self.path)
        self._known = dict(self._used)


def _signature(files: list[SourceFile]) -> str:
    hashed = blake2b(digest_size=16)
    for file in files:
        hashed.update(f"{file.path}\x1f{file.size}\x1f{file.modified.timestamp():.6f}\x1e".encode())
    return hashed.hexdigest()
