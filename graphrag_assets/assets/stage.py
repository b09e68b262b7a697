"""A step over the whole index: the assets that it makes, what they are made from, and the function that makes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from graphrag_assets.assets.index import Index
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.store.batches import UsageByTask
from graphrag_assets.store.index_database import Changes


class Markdown(str):
    """Metadata that the UI shows as Markdown."""


class StageResult(NamedTuple):
    """What a stage has done.

    Attributes:
        previews: rows of each asset to show some of.
        changes: of the tables written.
        usage: of models, by task.
        more: further metadata of assets; the usage of models goes to the first of them.
    """

    previews: dict[str, pl.DataFrame]
    changes: dict[str, Changes]
    usage: UsageByTask
    more: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Run:
    """What a stage is computed with.

    Attributes:
        config: of the step in this run.
        context, names: of the step and of the definitions of the index, in Dagster.
    """

    index: Index
    run_id: str
    config: Any
    context: Any
    names: Any

    def models(self) -> IndexingModels:
        """Return the models of this run."""
        return self.index.models(run_id=self.run_id)


@dataclass(frozen=True)
class Stage:
    """A step over the whole index.

    Attributes:
        name: of the step.
        group: of its assets.
        assets: the assets that it makes, each with those it is made from.
        version: of the code.
        code: the function that does the work; its docstring describes the step.
        compute: calls it with what a run gives.
    """

    name: str
    group: str
    assets: Mapping[str, tuple[str, ...]]
    version: str
    code: Callable[..., Any]
    compute: Callable[[Run], StageResult]


def usage_sums(usage: Mapping[str, Usage]) -> dict[str, dict[str, int | float]]:
    """Usage by task as plain numbers."""
    return {task: used.as_dict() for task, used in usage.items()}


def sums_of_changes(parts: Sequence[Mapping[str, Changes]]) -> dict[str, Changes]:
    """Return the changes of several writes of tables."""
    by_name: dict[str, list[Changes]] = {}
    for part in parts:
        for name, written in part.items():
            by_name.setdefault(name, []).append(written)
    return {
        name: Changes(written[-1].rows, sum(one.inserted for one in written), sum(one.deleted for one in written))
        for name, written in by_name.items()
    }
