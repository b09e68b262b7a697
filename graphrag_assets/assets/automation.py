"""Sensors and schedule. Two launch the job update_index when the input folder differs from the index.

These are off until they are switched on in the UI, or by GRAPHRAG_AUTOMATION=on.
"""

import contextlib
import time
from typing import Any

import dagster as dg
import psutil

from graphrag_assets.assets.corpus import register_batches
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import (
    BATCH_STATE,
    DEAD_RUNS_SENSOR,
    DOCUMENT_BATCHES,
    DOCUMENT_BATCHES_SENSOR,
    NIGHTLY_REFRESH,
    IndexNames,
)
from graphrag_assets.assets.resources import needs, open_index
from graphrag_assets.assets.scan import Which, present_inputs, scan, scan_input
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
    """Return the sensor that launches the job update_index."""

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
        scanned = scan_input(index)
    except GraphRAGError as error:  # an unreadable folder is not an empty one
        return dg.SkipReason(str(error))
    due = [batch for batch in (*scanned.revised, *scanned.deleted) if batch not in scanned.settling]
    inputs = present_inputs(index)
    if not due and (not [*scanned.batches, *scanned.imported] or recorded_inputs(index.working, "published") == inputs):
        writing = sorted(scanned.settling.intersection(scanned.revised))
        return dg.SkipReason(
            f"Still being written: {listed(writing)}." if writing else "The publication is up to date."
        )
    if runs := [run for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)) if names.has_run(run)]:
        return dg.SkipReason(f"Run {runs[0].run_id} is in progress.")
    request = stable_id(inputs, *((batch, scanned.digests.get(batch, "")) for batch in due))
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
    """Return the schedule of the job update_index, which then reads every file of the input folder.

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


def dead_runs_sensor(names: IndexNames) -> dg.SensorDefinition:
    """Return the sensor that is always on, and starts nothing."""

    @dg.sensor(
        name=names.name(DEAD_RUNS_SENSOR),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys=needs(names),
        description="Fails runs whose process has ended without a report, such as after a power cut: Dagster would "
        "wait. Registers the batches of a new index, so that *Materialize all* can be used.",
    )
    @masked_errors()
    def dead_runs_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        instance = context.instance
        if not instance.get_dynamic_partitions(names.name(DOCUMENT_BATCHES)):
            with contextlib.suppress(GraphRAGError):  # such as a missing folder: a run says what is wrong
                register_batches(names, instance, scan(open_index(names, context.resources)).batches)
        if not isinstance(instance.run_launcher, dg.DefaultRunLauncher):
            return dg.SkipReason("Another run launcher is in use; it monitors its runs.")
        failed = fail_dead_runs(names, instance)
        return dg.SkipReason(f"Runs without a process, now failed: {', '.join(failed) or 'none'}.")

    return dead_runs_sensor


def fail_dead_runs(names: IndexNames, instance: dg.DagsterInstance) -> list[str]:
    """Fail the runs of an index whose process no longer exists, so that they can be retried; returns their ids."""
    statuses = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    failed = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=statuses)):
        run = record.dagster_run
        process = _process_of(instance, run.run_id) if names.has_run(run) else None
        if process is not None and not _is_alive(*process):
            instance.report_run_failed(run, f"The process {process[0]} of this run no longer exists.")
            failed.append(run.run_id)
    return failed


def _process_of(instance: dg.DagsterInstance, run_id: str) -> tuple[int, float] | None:
    """Return the process of a run, and when it said so: a run may have been in the queue for hours before."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        event = entry.dagster_event
        if event and "pid" in event.engine_event_data.metadata:
            return int(str(event.engine_event_data.metadata["pid"].value)), entry.timestamp
    return None


def _is_alive(pid: int, reported: float) -> bool:
    """Whether the process exists and is the same one: the system may reuse its number."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() < reported + 60
    except psutil.NoSuchProcess:
        return False
