"""What a stage does again, and what it returns."""

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from graphrag_assets.store.working import Changes

if TYPE_CHECKING:
    from graphrag_assets.llm import Usage


class Rerun(Enum):
    """What is done again although nothing has changed; answers still come from the ledger, at no cost."""

    NOTHING = "nothing"
    FAILED_UNITS = "failed_units"
    EXTRACTION = "extraction"
    REPORTS = "reports"
    EVERYTHING = "everything"


class StageResult(NamedTuple):
    """Frames and changes by table name, usage of models by task, seconds, and pruned rows by table name."""

    frames: dict[str, pl.DataFrame]
    changes: dict[str, Changes]
    usage: "Mapping[str, Usage]"
    seconds: float
    pruned: Mapping[str, int] = {}


def usage_sums(usage: "Mapping[str, Usage]") -> dict[str, dict[str, int | float]]:
    """Usage by task as plain numbers."""
    return {task: used.as_dict() for task, used in usage.items()}
