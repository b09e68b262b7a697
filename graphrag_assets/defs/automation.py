"""Sensors and schedule: watch the input folder, propagate changes to the publication, fail orphaned runs.

`reconcile` decides what to do. Sensors and schedule are off until they are switched on in the UI, or by
GRAPHRAG_AUTOMATION=on.
"""

import time
from collections.abc import Iterable
from dataclasses import replace

import dagster as dg
import psutil

from graphrag_assets.defs.jobs import BATCH_ASSETS, index_batch_job, refresh_graph_job
from graphrag_assets.defs.operations import refresh_changed
from graphrag_assets.defs.partitions import document_batches
from graphrag_assets.defs.reconcile import Failures, Observed, batch_request, decide, refresh_request, wanted
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.scan import claim_input_folder, record_unusable_names, scan
from graphrag_assets.settings import Settings
from graphrag_assets.store.batches import inputs_of, recorded_inputs

REQUEST_TAG = "graphrag/request"
_PARTITION, _RANGE_START = "dagster/partition", "dagster/asset_partition_range_start"
UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_OPERATIONS = {"index_everything", "refresh_changed", "retry_failed_units", "recluster"}
_settings = Settings.load()
_automated = _settings.automation == "on"
_status = dg.DefaultSensorStatus.RUNNING if _automated else dg.DefaultSensorStatus.STOPPED


@dg.sensor(
    jobs=[index_batch_job, refresh_graph_job],
    minimum_interval_seconds=15,
    default_status=_status,
    description="Watches the input folder: indexes new, edited and deleted batches, then refreshes and publishes.",
)
def document_batches_sensor(context: dg.SensorEvaluationContext, index: GraphIndex) -> dg.SensorResult | dg.SkipReason:
    """Observe, decide, request runs. A tick without a request says why."""
    try:
        own = index.open()
        claim_input_folder(own)
        record_unusable_names(own)
        observed = observe(own, context.instance)
    except GraphRAGError as error:  # an unreadable folder is not an empty one
        return dg.SkipReason(str(error))
    decision = decide(observed)
    requests = [
        dg.RunRequest(r.key, job_name=index_batch_job.name, partition_key=r.batch, tags={REQUEST_TAG: r.name})
        for r in decision.batches
    ]
    if decision.refresh:
        tags = {REQUEST_TAG: decision.refresh.name}
        requests.append(dg.RunRequest(decision.refresh.key, job_name=refresh_graph_job.name, tags=tags))
    changes = [
        dg.AssetMaterialization("source_files", partition=r.batch, tags={"dagster/data_version": r.name})
        for r in decision.batches
    ]
    partitions = [
        change(keys)
        for change, keys in (
            (document_batches.build_add_request, decision.add),
            (document_batches.build_delete_request, decision.drop),
        )
        if keys
    ]
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else " ".join(decision.waiting) or "The publication is up to date.",
        dynamic_partitions_requests=partitions,
        asset_events=changes,
    )


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Registers new entries of the input folder as partitions, so that they can be materialized by hand.",
)
def register_batches_sensor(context: dg.SensorEvaluationContext, index: GraphIndex) -> dg.SensorResult | dg.SkipReason:
    """Add the partitions of new batches. Starts nothing and reads no file."""
    try:
        batches = index.open().input_folder.batches()
    except GraphRAGError as error:
        return dg.SkipReason(str(error))
    new = sorted(set(batches) - set(context.instance.get_dynamic_partitions(str(document_batches.name))))
    if not new:
        return dg.SkipReason(f"All {len(batches)} batches of the input folder are registered.")
    return dg.SensorResult(
        skip_reason=f"Registered {', '.join(new)}.",
        dynamic_partitions_requests=[document_batches.build_add_request(new)],
    )


def observe(index: Index, instance: dg.DagsterInstance) -> Observed:
    """The present state: folder, database, publication, and Dagster's runs.

    Raises:
        InputError: the input folder cannot be read.
    """
    found = scan(index)
    indexing, refreshing = _under_way(instance, found.digests)
    inputs = inputs_of(index.working.read("SELECT batch, revision FROM batch_state"))
    observed = Observed(
        scan=found,
        keys=frozenset(instance.get_dynamic_partitions(str(document_batches.name))),
        indexing=indexing,
        refreshing=refreshing,
        inputs=inputs,
        published=recorded_inputs(index.working, "published"),
        now=time.time(),
    )
    names = [*(batch_request(found, batch) for batch in wanted(observed)), refresh_request(inputs)]
    failures = {name: failed for name in names if (failed := _failures(instance, name)).n}
    return replace(observed, failures=failures)


def _under_way(instance: dg.DagsterInstance, batches: Iterable[str]) -> tuple[frozenset[str], bool]:
    """The batches in unfinished runs, and whether an unfinished run selects global assets."""
    indexing: set[str] = set()
    refreshing = False
    for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)):
        selection = {key.to_user_string() for key in run.asset_selection or ()}
        if _PARTITION in run.tags:
            indexing.add(run.tags[_PARTITION])
        elif _RANGE_START in run.tags or run.job_name in _OPERATIONS:
            indexing.update(batches)
        refreshing |= run.job_name in _OPERATIONS | {refresh_graph_job.name} or bool(selection - set(BATCH_ASSETS))
    return frozenset(indexing), refreshing


def _failures(instance: dg.DagsterInstance, name: str) -> Failures:
    """Failed requests; Dagster's own retries of a run count as the same attempt."""
    over = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
    records = instance.get_run_records(dg.RunsFilter(tags={REQUEST_TAG: name}, statuses=over))
    canceled = any(record.dagster_run.status == dg.DagsterRunStatus.CANCELED for record in records)
    attempts = {record.dagster_run.root_run_id or record.dagster_run.run_id for record in records}
    return Failures(len(attempts), max((record.end_time or 0.0 for record in records), default=0.0), canceled)


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=_status,
    description="Fails runs whose process has ended without a report, such as after a power cut; Dagster would wait.",
)
def dead_runs_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail every run whose process on this machine has ended without a report."""
    if not isinstance(context.instance.run_launcher, dg.DefaultRunLauncher):
        return dg.SkipReason("Another run launcher is in use; it monitors its runs.")
    failed = fail_orphaned_runs(context.instance)
    return dg.SkipReason(
        f"Failed {len(failed)} orphaned runs: {', '.join(failed)}" if failed else "No run is orphaned."
    )


def fail_orphaned_runs(instance: dg.DagsterInstance) -> list[str]:
    """Fail the runs whose process no longer exists, so that they can be retried; returns their ids."""
    statuses = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    failed = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=statuses)):
        run = record.dagster_run
        pid = _process_of(instance, run.run_id)
        if pid is not None and not _is_alive(pid, record.start_time or record.create_timestamp.timestamp()):
            instance.report_run_failed(run, f"The process {pid} of this run no longer exists.")
            failed.append(run.run_id)
    return failed


def _process_of(instance: dg.DagsterInstance, run_id: str) -> int | None:
    """The process id that the run reported."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        event = entry.dagster_event
        if event and "pid" in event.engine_event_data.metadata:
            return int(str(event.engine_event_data.metadata["pid"].value))
    return None


def _is_alive(pid: int, began: float) -> bool:
    """Whether the process exists and is the same one: the system may reuse its number."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() < began + 60
    except psutil.NoSuchProcess:
        return False


nightly_refresh = dg.ScheduleDefinition(
    name="nightly_refresh",
    job=refresh_changed,
    cron_schedule=_settings.nightly_cron,
    default_status=dg.DefaultScheduleStatus.RUNNING if _automated else dg.DefaultScheduleStatus.STOPPED,
    description="Indexes what changed, retries failed text units, refreshes, publishes. Cron: GRAPHRAG_NIGHTLY_CRON.",
)
