"""Decisions on names: which are one thing, which are not, and which name stands for several things.

They are lines of a file in the index folder, beside the ledger: they outlive the documents, a purge and the working
database. What they do to the graph is derived, see `pipeline/alias_decisions.py`.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from graphrag_assets.errors import StoreError
from graphrag_assets.store.index_files import lock_file, replacing

FILE = "decisions.jsonl"
PERSON = "person"
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. Names are normalized, see `text.words.title_key`.

    Attributes:
        kind: accept: `name` stands for `other`; reject: they are two things; unsure: the judge could not tell, which
            changes nothing; split: `name` stands for several things.
        other: of a split by documents with patterns, the name in these documents.
        split_by: of a split: type or documents.
        documents: patterns of the sources of the documents; none: each document has a thing of its own.
        decided_by: `PERSON`, or the model.
        decided_at: UTC, ISO 8601.
    """

    kind: Literal["accept", "reject", "unsure", "split"]
    name: str
    other: str = ""
    split_by: Literal["", "type", "documents"] = ""
    documents: tuple[str, ...] = ()
    decided_by: str = PERSON
    reason: str = ""
    decided_at: str = ""

    def __post_init__(self) -> None:
        if not (self.name and (self.split_by if self.kind == "split" else self.other)):
            raise ValueError("it lacks a name, or how it is split")

    @property
    def key(self) -> Key:
        """What a later decision replaces: that on the same pair, or the same split."""
        return ("split", self.name, self.other) if self.kind == "split" else pair_key(self.name, self.other)

    @property
    def effect(self) -> tuple[object, ...]:
        """What the graph depends on."""
        return (self.kind, self.name, self.other, self.split_by, self.documents)


_DECISION = TypeAdapter(Decision)


def pair_key(one: str, other: str) -> Key:
    """Return the key of a decision on two names, in either order."""
    return ("pair", *sorted((one, other)))


def read_decisions(index_folder: Path) -> list[Decision]:
    """Return the decisions, sorted by their keys."""
    return list(_read(index_folder / FILE).values())


@contextlib.contextmanager
def changing_decisions(index_folder: Path) -> Iterator[dict[Key, Decision]]:
    """Yield the decisions by key, to be changed: they are written at the end unless the block raises.

    No other process changes them meanwhile.
    """
    file = index_folder / FILE
    with FileLock(lock_file(index_folder, "decisions")):
        decisions = _read(file)
        before = dict(decisions)
        yield decisions
        if decisions == before:
            return
        lines = [json.dumps(asdict(decisions[key]), ensure_ascii=False) + "\n" for key in sorted(decisions)]
        with replacing(file) as draft:
            draft.write_text("".join(lines), encoding="utf-8")


def _read(file: Path) -> dict[Key, Decision]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")  # a reason may have other characters that end lines
    except FileNotFoundError:
        return {}
    decisions = [_parse(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return dict(sorted((one.key, one) for one in decisions))


def _parse(file: Path, number: int, line: str) -> Decision:
    try:
        return _DECISION.validate_json(line)
    except ValidationError as error:
        wrong = error.errors()[0]
        where = f"{'.'.join(map(str, wrong['loc']))}: " if wrong["loc"] else ""
        raise StoreError(
            f"{file}, line {number} is no decision: {where}{wrong['msg']}. Correct or delete the line."
        ) from error
