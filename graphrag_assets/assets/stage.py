"""A step over the whole index: the assets that it makes, what they are made from, and the function that makes them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from graphrag_assets.assets.index import Index
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.embedded import REPORTER
from graphrag_assets.store.batches import REFRESHED, record_stage, remove_inputs
from graphrag_assets.store.index_database import Changes

CODE_VERSIONS = {
    "knowledge_graph": "9",
    "communities": "3",
    "community_reports": f"7/{REPORTER}",
    "embeddings": "5",
    "entity_candidates": "4",
    "publication": "2",
}
"""Increment one when the same inputs give other rows; those of a batch have `CORPUS_VERSION` and `EXTRACTOR`."""


@dataclass(frozen=True)
class Run:
    """What a stage is computed with.

    Attributes:
        config: of the step in this run.
        context, names: of the step and of the definitions of the index; None outside of Dagster.
    """

    index: Index
    run_id: str
    models: IndexingModels
    config: Any = None
    context: Any = None
    names: Any = None


class StageResult(NamedTuple):
    """What a stage has done.

    Attributes:
        changes: of the tables written.
        metadata: of its first asset.
        usage: of models, by task.
    """

    changes: Mapping[str, Changes] = {}
    metadata: Mapping[str, Any] = {}
    usage: Mapping[str, Mapping[str, float]] = {}


@dataclass(frozen=True)
class Stage:
    """A step over the whole index.

    Attributes:
        name: of the step.
        group: of its assets.
        assets: the assets that it makes, each with those it is made from.
        version: of the code.
        compute: the function that does the work; its docstring describes the step.
    """

    name: str
    group: str
    assets: Mapping[str, tuple[str, ...]]
    version: str
    compute: Callable[[Run], StageResult]

    def update(self, index: Index, run_id: str, models: IndexingModels | None = None, **of_dagster: Any) -> StageResult:
        """Compute the stage while no other step writes the index, and record what it has written.

        Args:
            models: in place of those of the settings.
            of_dagster: config, context and names, see `Run`.
        """
        run = Run(index, run_id, models or index.models(run_id=run_id), **of_dagster)
        with index.exclusive(self.name, run_id):
            started = time.monotonic()
            with index.working.transaction() as connection:  # a run that dies in the stage has changed the index
                remove_inputs(connection, REFRESHED)
            result = self.compute(run)._replace(usage=usage_sums(run.models.usage))
            if result.changes:
                seconds, main = time.monotonic() - started, next(iter(self.assets))
                with index.working.transaction() as connection:
                    record_stage(connection, run_id, self.name, None, seconds, result.changes, main, result.usage)
        return result


def stage(
    group: str, assets: Mapping[str, tuple[str, ...]], version: str
) -> Callable[[Callable[[Run], StageResult]], Stage]:
    """Return what makes a function the stage of its name."""
    return lambda compute: Stage(compute.__name__, group, assets, version, compute)


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
