"""Sensors and schedule: the folder is watched, changes are carried on to the publication, dead runs are failed.

What to do is decided in `decisions`; here it is looked up and asked for. All of it is off until it is switched on in
the UI, or by GRAPHRAG_AUTOMATION=on.
"""

import time
from collections.abc import Iterable
from dataclasses import replace

import dagster as dg
import psutil
from dagster._core.launcher.default_run_launcher import DefaultRunLauncher

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
    """One tick: look, decide, ask for runs."""
    try:
        own = index.open()
        claim_input_folder(own)
        record_unusable_names(own)
        observed = observe(own, context.instance)
    except GraphRAGError as error:  # a folder that cannot be read is not an empty one
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
    return dg.SensorResult(run_requests=requests, dynamic_partitions_requests=partitions, asset_events=changes)


def observe(index: Index, instance: dg.DagsterInstance) -> Observed:
    """What there is: folder, database, publication, and Dagster's runs.

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
    """The batches in unfinished runs, and whether one of these works on the global assets."""
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
    over = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
    records = instance.get_run_records(dg.RunsFilter(tags={REQUEST_TAG: name}, statuses=over))
    cancelled = any(record.dagster_run.status == dg.DagsterRunStatus.CANCELED for record in records)
    return Failures(len(records), max((record.end_time or 0.0 for record in records), default=0.0), cancelled)


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=_status,
    description="Marks runs as failed whose process is gone, such as after a power cut: Dagster itself waits for ever.",
)
def dead_runs_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Report every run as failed whose process on this machine has ended without a word."""
    if not isinstance(context.instance.run_launcher, DefaultRunLauncher):
        return dg.SkipReason("Runs are launched elsewhere; their launcher looks after them.")
    failed = fail_orphaned_runs(context.instance)
    return dg.SkipReason(f"{len(failed)} runs were dead: {', '.join(failed)}" if failed else "No run is dead.")


def fail_orphaned_runs(instance: dg.DagsterInstance) -> list[str]:
    """The ids of runs that were under way in processes that are gone; they are failed now, and so may be retried."""
    statuses = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    failed = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=statuses)):
        run = record.dagster_run
        pid = _process_of(instance, run.run_id)
        if pid is not None and not _is_alive(pid, record.start_time or record.create_timestamp.timestamp()):
            instance.report_run_failed(run, f"The process {pid} of this run is gone.")
            failed.append(run.run_id)
    return failed


def _process_of(instance: dg.DagsterInstance, run_id: str) -> int | None:
    """The process a run said it runs in."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        event = entry.dagster_event
        if event and "pid" in event.engine_event_data.metadata:
            return int(str(event.engine_event_data.metadata["pid"].value))
    return None


def _is_alive(pid: int, began: float) -> bool:
    """Whether the process is there and is the one: a number may be given again to a later process."""
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
