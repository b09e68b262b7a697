"""What a stage does again, and what it returns."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import polars as pl

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.store.working import Changes


class Rerun(Enum):
    """What of a batch is done again although nothing has changed; answers still come from the ledger, at no cost."""

    NOTHING = "nothing"
    FAILED_UNITS = "failed_units"
    EXTRACTION = "extraction"
    EVERYTHING = "everything"


class StageResult(NamedTuple):
    """Frames and changes by table name, usage of models by task, and seconds."""

    frames: dict[str, pl.DataFrame]
    changes: dict[str, Changes]
    usage: "Mapping[str, Usage]"
    seconds: float


def usage_sums(usage: "Mapping[str, Usage]") -> dict[str, dict[str, int | float]]:
    """Usage by task as plain numbers."""
    return {task: used.as_dict() for task, used in usage.items()}


def sums_of_changes(parts: Sequence[Mapping[str, Changes]]) -> dict[str, Changes]:
    """The changes of several writes of tables."""
    by_name: dict[str, list[Changes]] = {}
    for part in parts:
        for name, written in part.items():
            by_name.setdefault(name, []).append(written)
    return {
        name: Changes(written[-1].rows, sum(one.inserted for one in written), sum(one.deleted for one in written))
        for name, written in by_name.items()
    }
