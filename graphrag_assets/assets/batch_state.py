"""What is indexed of each batch, and the step that indexes the batches that are due.

Which batches these are is not known before the step looks, so its run has no partition. It reports the partitions that
it has materialized.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_assets.assets.corpus import FAILED, BatchFailures, BatchRun, register_batches
from graphrag_assets.assets.index_batch import CODE_VERSION
from graphrag_assets.assets.index_names import BATCH_ASSETS, BATCH_STATE, IndexNames
from graphrag_assets.assets.reporting import Metadata
from graphrag_assets.assets.scan import Which, retry_given_up, scan_input
from graphrag_assets.assets.stage import Run, Stage, StageResult

_CHECK = "every_batch_is_indexed"
_STATEMENT = "No batch failed when the due batches were last indexed."


class DueBatches(dg.Config):
    """Which batches are indexed before the graph is refreshed."""

    which: Which = Field(
        default=Which.CHANGED,
        description="CHANGED: batches that differ from the input folder or have failed text units. FAILED: the latter "
        "alone, and what two runs got no valid answer to. ALL. NOTHING: refresh and publish what is indexed.",
    )
    batches: list[str] = Field(default=[], description="Only these batches, whether or not they have changed.")
    read_every_file: bool = Field(
        default=False,
        description="true: compare the content of every file, also of those with the same size and time as before.",
    )


def batch_state(step: Run) -> StageResult:
    """Index the batches that are due. One that fails does not stop the others."""
    names: IndexNames = step.names
    context, index, config = step.context, step.index, step.config
    batches = BatchRun(names, context, index)
    failures = batches.failures
    scan = scan_input(index, read_every_file=config.read_every_file)
    register_batches(names, context.instance, scan.batches)
    if config.which is Which.FAILED:
        retry_given_up(index)
    due = scan.chosen(config.which, config.batches)
    _report_unreported(batches, [batch for batch in scan.unchanged if batch not in due])
    context.log.info("batches to index: %d (%s)", len(due), ", ".join(due) or "-")
    batches.index_all(due)
    deleted = set(scan.deleted).intersection(due) - failures.reasons.keys()
    register_batches(names, context.instance, [batch for batch in scan.batches if batch not in deleted])
    if failures.stopped:
        raise failures.as_failure()
    n_batches = index.working.read("SELECT count(*) FROM batch_state WHERE n_documents > 0").item()
    more = {FAILED: failures.reasons} if failures.reasons else {}
    return StageResult({}, {}, {}, {BATCH_STATE: {"dagster/row_count": n_batches, **more}})


BATCHES = Stage(BATCH_STATE, "corpus", {BATCH_STATE: BATCH_ASSETS}, CODE_VERSION, batch_state, batch_state)


def _report_unreported(batches: BatchRun, unchanged: Sequence[str]) -> None:
    """Report the unchanged batches that Dagster does not know as materialized.

    A process was killed between the commit of a batch and its report, or the Dagster home is a new one.
    """
    names, instance = batches.names, batches.context.instance
    unreported = defaultdict[str, Metadata](dict)
    for name in BATCH_ASSETS:
        statuses = instance.get_status_by_partition(names.key(name), unchanged, names.batches) or {}
        for batch in unchanged:
            if statuses.get(batch) in (None, dg.AssetPartitionStatus.FAILED):
                unreported[batch][name] = {}
    for batch, metadata in unreported.items():
        batches.report(batch, metadata)


def batches_check(names: IndexNames) -> dg.AssetChecksDefinition:
    """Return the check that fails the run in which a batch has failed, while the others are published."""

    @dg.multi_asset_check(
        name=names.name(f"check_{BATCH_STATE}"),
        specs=[dg.AssetCheckSpec(_CHECK, asset=names.key(BATCH_STATE), description=_STATEMENT)],
        can_subset=True,
    )
    def check_batch_state(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        event = context.instance.get_latest_materialization_event(names.key(BATCH_STATE))
        state = event.asset_materialization if event else None
        reasons: Any = state.metadata[FAILED].value if state and FAILED in state.metadata else {}
        failures = BatchFailures(dict(reasons))
        yield dg.AssetCheckResult(check_name=_CHECK, asset_key=names.key(BATCH_STATE), passed=not failures.reasons)
        if failures.reasons:
            raise dg.Failure(f"{failures}. The other batches are indexed.", allow_retries=False)

    return check_batch_state
