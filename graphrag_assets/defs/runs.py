"""Runs of an index's asset jobs in this process, one per batch and one for everything after them."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import dagster as dg
from sqlalchemy.exc import IntegrityError

from graphrag_assets.defs.checks import failed_check_messages
from graphrag_assets.defs.index_names import INDEX_BATCHES, PUBLICATION, REFRESH_GRAPH, SOURCE_FILES, IndexNames
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.scan import Scan
from graphrag_assets.indexing.stage_runner import NOT_PUBLISHED, OUT_OF_BUDGET
from graphrag_assets.indexing.up_to_date import refreshed
from graphrag_assets.llm.model_errors import BudgetExceeded, CircuitOpen, ModelUnusable
from graphrag_assets.received_signals import raise_if_interrupted, signals_noted


class IndexRun(NamedTuple):
    """A finished run: of the batch `batch`, or, for None, of the assets after all batches."""

    batch: str | None
    result: dg.ExecuteInProcessResult

    @property
    def run_id(self) -> str:
        return self.result.run_id

    @property
    def success(self) -> bool:
        return self.result.success

    @property
    def published(self) -> tuple[int, bool] | None:
        """The number of the publication that a refresh has made or found, and whether it is new; None if it failed."""
        for event in self.result.asset_materializations_for_node(PUBLICATION) if self.success else []:
            return int(str(event.metadata["publication"].value)), bool(event.metadata["new"].value)
        return None

    @property
    def not_published(self) -> str | None:
        """What to say if it failed for a reason for which all others would fail, too: then nothing is published."""
        if failed_by(self.result.all_events, BudgetExceeded.__name__):
            return OUT_OF_BUDGET
        return NOT_PUBLISHED if is_unpaid(self.result.all_events) else None

    @property
    def reason(self) -> str | None:
        """Why it failed: the blocking checks that did not pass, with their remedies, or the errors of its steps."""
        if self.success:
            return None
        if checks := failed_check_messages(self.result.get_asset_check_evaluations()):
            return " ".join(checks)
        errors = (e.step_failure_data.error for e in self.result.all_events if e.is_step_failure)
        messages = [(error.cause or error).message.strip().partition("\n")[0] for error in errors if error]
        return "; ".join(messages) or "see the log of the run"


class Runner:
    """Runs asset jobs of one index in this process.

    The runs are recorded in `instance` like any others, with checks and data versions. A process of its own for each
    would cost three seconds.
    """

    def __init__(
        self,
        names: IndexNames,
        get_job: Callable[[str], dg.JobDefinition],
        instance: dg.DagsterInstance,
        config: Mapping[str, Any],
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """`config`: run config that all runs share; `tags`: tags of all runs."""
        self.names, self.get_job, self.instance = names, get_job, instance
        self.config, self.tags = dict(config), dict(tags or {})

    def index(self, batch: str, ops: Mapping[str, Any] | None = None) -> IndexRun:
        """Index one batch; `ops`: run config of its steps."""
        return IndexRun(batch, self._run(INDEX_BATCHES, batch, ops or {}))

    def refresh(self, index: Index, ops: Mapping[str, Any] | None = None) -> IndexRun:
        """Refresh everything after the batches."""
        return refreshed(index, lambda: IndexRun(None, self._run(REFRESH_GRAPH, None, ops or {})))

    def _run(self, job: str, batch: str | None, ops: Mapping[str, Any]) -> dg.ExecuteInProcessResult:
        with signals_noted():
            result = self.get_job(self.names.name(job)).execute_in_process(
                partition_key=batch,
                instance=self.instance,
                raise_on_error=False,
                run_config={**self.config, "ops": dict(ops)},
                tags=self.tags,
            )
            raise_if_interrupted()
        if failed_by(result.all_events, dg.DagsterExecutionInterruptedError.__name__):
            raise KeyboardInterrupt  # which Dagster reports as a failure, so that the next batch would begin
        return result


def is_unpaid(events: Sequence[dg.DagsterEvent]) -> bool:
    """Whether a step has failed because the budget is used up or a model cannot be used."""
    return any(failed_by(events, kind.__name__) for kind in (BudgetExceeded, CircuitOpen, ModelUnusable))


def failed_by(events: Sequence[dg.DagsterEvent], error_class: str) -> bool:
    """Whether a step has failed by an error of this class."""
    errors = [event.step_failure_data.error for event in events if event.is_step_failure]
    return any(error and error_class in (error.cls_name, error.cause and error.cause.cls_name) for error in errors)


def register_batches(names: IndexNames, instance: dg.DagsterInstance, scan: Scan) -> None:
    """Register the batches as partitions, and report the present versions of those that differ from the index."""
    _add_partitions(instance, names.partitions_name, scan.known)
    for event in source_versions(names, scan, scan.due):
        instance.report_runless_asset_event(event)


def _add_partitions(instance: dg.DagsterInstance, name: str, keys: Sequence[str]) -> None:
    """Register partitions, in several processes at once too.

    Dagster looks for them, then inserts those it has not found: where another process was first, it has to look again.
    """
    for _ in keys:  # each collision means that another one is registered
        with contextlib.suppress(IntegrityError):
            instance.add_dynamic_partitions(name, keys)
            return
    instance.add_dynamic_partitions(name, keys)


def source_versions(names: IndexNames, scan: Scan, batches: Sequence[str]) -> list[dg.AssetObservation]:
    """Events that tell Dagster the present versions of batches of the input folder.

    Observations: of an asset that something else makes, Dagster compares no materializations.
    """
    key = names.key(SOURCE_FILES)
    return [
        dg.AssetObservation(key, partition=batch, tags={"dagster/data_version": version_of(scan, batch)})
        for batch in batches
    ]


def version_of(scan: Scan, batch: str) -> str:
    """The version of a batch of the input folder: of its files, and of the settings that determine its rows."""
    return scan.digests.get(batch, "deleted")
