"""Sensor and schedule: watch the input folder, and launch the job update_index when it differs from the index.

Both are off until they are switched on in the UI, or by GRAPHRAG_AUTOMATION=on.
"""

import time
from typing import Any

import dagster as dg

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import (
    BATCH_STATE,
    DOCUMENT_BATCHES_SENSOR,
    NIGHTLY_REFRESH,
    IndexNames,
)
from graphrag_assets.assets.resources import needs, open_index
from graphrag_assets.assets.scan import Which, present_inputs, scan_input
from graphrag_assets.errors import GraphRAGError, masked_errors
from graphrag_assets.ids import stable_id
from graphrag_assets.runtime.outgoing import listed
from graphrag_assets.store.batches import recorded_inputs

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 60.0, 86_400.0
"""Wait before a failed run is tried again: the first one, which doubles with each failure, and the longest."""
UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_OVER = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def document_batches_sensor(names: IndexNames, job: Any, automated: bool) -> dg.SensorDefinition:
    """The sensor that launches the job update_index."""

    @dg.sensor(
        name=names.name(DOCUMENT_BATCHES_SENSOR),
        job=job,
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING if automated else dg.DefaultSensorStatus.STOPPED,
        required_resource_keys=needs(names),
        description="Watches the input folder: launches update_index for new, edited and deleted batches.",
    )
    @masked_errors()
    def document_batches_sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return request_update(names, open_index(names, context.resources), context.instance, time.time())

    return document_batches_sensor


def request_update(
    names: IndexNames, index: Index, instance: dg.DagsterInstance, now: float
) -> dg.RunRequest | dg.SkipReason:
    """One run for all that differs; a tick without a request says why.

    Every tick compares states, so a missed event does no harm. The request is the hash of the difference: it is made
    again after a failure, and not after somebody has canceled it.
    """
    try:
        found = scan_input(index)
    except GraphRAGError as error:  # an unreadable folder is not an empty one
        return dg.SkipReason(str(error))
    due = [batch for batch in (*found.revised, *found.deleted) if batch not in found.settling]
    inputs = present_inputs(index)
    if not due and (not found.revisions or recorded_inputs(index.working, "published") == inputs):
        writing = sorted(found.settling.intersection(found.revised))
        return dg.SkipReason(
            f"Still being written: {listed(writing)}." if writing else "The publication is up to date."
        )
    if runs := [run for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)) if names.has_run(run)]:
        return dg.SkipReason(f"Run {runs[0].run_id} is in progress.")
    request = stable_id(inputs, *((batch, found.digests.get(batch, "")) for batch in due))
    tag = f"graphrag/{names.name('request')}"  # Dagster allows one slash
    failed = instance.get_run_records(dg.RunsFilter(tags={tag: request}, statuses=_OVER))
    if any(record.dagster_run.status == dg.DagsterRunStatus.CANCELED for record in failed):
        return dg.SkipReason(f"The run for {listed(due)} was canceled. Launch update_index, or change a batch.")
    if failed:
        wait = min(FIRST_WAIT_SECONDS * 2 ** (len(failed) - 1), LONGEST_WAIT_SECONDS)
        minutes = (max(record.end_time or 0.0 for record in failed) + wait - now) / 60
        if minutes > 0:
            return dg.SkipReason(f"The last run failed; the next attempt is in {minutes:.0f} minutes.")
    batches = {"batches": due} if due else {"which": Which.NOTHING.name}
    return dg.RunRequest(
        f"{request}.{len(failed)}",
        run_config={"ops": {names.name(BATCH_STATE): {"config": batches}}},
        tags={tag: request, "dagster/max_retries": "0"},  # Dagster's retries would multiply with these
    )


def nightly_refresh(names: IndexNames, job: Any, automated: bool) -> dg.ScheduleDefinition:
    """The schedule of the job update_index, which then reads every file of the input folder.

    An edit that keeps size and time is found on a local disk by inode and change time, which not every file system has.
    """
    return dg.ScheduleDefinition(
        name=names.name(NIGHTLY_REFRESH),
        job=job,
        cron_schedule="0 3 * * *",  # nightly, when few edit and ask
        run_config={"ops": {names.name(BATCH_STATE): {"config": {"read_every_file": True}}}},
        default_status=dg.DefaultScheduleStatus.RUNNING if automated else dg.DefaultScheduleStatus.STOPPED,
        description="Reads every file, indexes what changed, retries failed text units, refreshes, publishes.",
    )
