"""The jobs of an index, and what launches them: sensors and a schedule.

Two launch the job update_index when the input folder differs from the index. These are off until they are switched on
in the UI, or by GRAPHRAG_AUTOMATION=on.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import dagster as dg
import psutil
from pydantic import Field

from graphrag_assets.assets.corpus import register_batches
from graphrag_assets.assets.index import Index, models_for
from graphrag_assets.assets.index_batch import ask_about_batch, same_on_all_machines
from graphrag_assets.assets.index_names import (
    BATCH_STATE,
    DEAD_RUNS_SENSOR,
    DOCUMENT_BATCHES,
    DOCUMENT_BATCHES_SENSOR,
    EXTRACT,
    EXTRACT_BATCH,
    GLOBAL_ASSETS,
    NIGHTLY_REFRESH,
    PUBLICATION,
    ROLLBACK,
    UPDATE_INDEX,
    IndexNames,
)
from graphrag_assets.assets.scan import BatchSelection, present_inputs, scan, scan_input
from graphrag_assets.assets.stages import masked, report_up_to_date, usage_metadata
from graphrag_assets.errors import GraphRAGError, masked_errors
from graphrag_assets.ids import stable_id
from graphrag_assets.runtime.outgoing import listed
from graphrag_assets.store.batches import recorded_inputs
from graphrag_assets.store.prompt_profiles import profile_of
from graphrag_assets.store.publications import roll_back

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

_ASK_MODELS = "ask_models"


def update_index_job(names: IndexNames) -> Any:
    """Return the job update_index, as `dg.Definitions` resolves it: all global assets, and their checks."""
    return dg.define_asset_job(
        names.name(UPDATE_INDEX),
        dg.AssetSelection.assets(*names.keys(GLOBAL_ASSETS)),
        description="Start here: index what changed in the input folder, refresh the graph, publish. which: FAILED, "
        "ALL or NOTHING, or batches by name, to index these instead.",
        # A process per step costs three seconds. Parallelism comes from calls within a step.
        executor_def=dg.in_process_executor,
    )


class Rollback(dg.Config):
    """The publication to go back to."""

    publication: int | None = Field(
        None, description="Number of a publication that is kept; by default the one before the current one."
    )


def rollback_job(names: IndexNames) -> dg.JobDefinition:
    """Return the job rollback."""

    @dg.op(
        name=names.name("roll_back_publication"),
        required_resource_keys={names.resource},
        description="Point readers to an earlier publication. The next publication with new content replaces it.",
    )
    @masked()
    def roll_back_publication(context: dg.OpExecutionContext, config: Rollback) -> None:
        index = names.index(context.resources)
        number, _ = roll_back(index.settings.index_folder, config.publication or "previous")
        context.log.info("readers see publication %d", number)
        context.log_event(dg.AssetObservation(names.key(PUBLICATION), metadata={"publication": number}))
        report_up_to_date(names, context.instance, index, scan(index))

    return job_of(roll_back_publication, names.name(ROLLBACK), "Point readers to an earlier publication.")


class Conditions(dg.Config):
    """What a machine without the index cannot look up. The one with the index fills it in when it launches the run."""

    profile: dict[str, Any] = Field(description="The prompt profile in force; empty: the built-in prompts.")
    made_with: dict[str, str] = Field(description="What determines the requests, to be the same on both machines.")


def extract_batch_job(names: IndexNames, open_now: Callable[[], Index]) -> dg.JobDefinition:
    """Return the job extract_batch: any machine asks the models about a batch, for the ledger that all machines share.

    It writes nothing else, and needs no index. The machine with the index indexes the batch as always, and finds the
    answers. A request's key in the ledger holds all that is sent, so both must read the same files with the same
    settings. `open_now` opens the index when a run is launched.
    """

    @dg.op(
        name=names.name(_ASK_MODELS),
        required_resource_keys={names.resource},
        description="Read and chunk a batch, and ask the models about its text units. Only the ledger is written.",
    )
    @masked()
    def ask_models(context: dg.OpExecutionContext, config: Conditions) -> dg.Output[None]:
        index, batch = names.index(context.resources), context.partition_key
        profile = profile_of(config.profile) if config.profile else None
        models = models_for(index.settings, batch, context.run_id, index.keys, profile=profile)
        extracted = ask_about_batch(index, batch, models, config.made_with)
        counts = {"text_units": extracted.frames["text_units"].height, "errors": extracted.errors.height}
        context.log.info("batch %s: %s", batch, counts)
        return dg.Output(None, metadata={**counts, **usage_metadata(extracted.usage)})

    def config_of(_: str) -> Mapping[str, Any]:
        index = open_now()
        conditions = Conditions(
            profile=asdict(index.profile) if index.profile else {},
            made_with=same_on_all_machines(index.settings, index.models()),
        )
        return {"ops": {names.name(_ASK_MODELS): {"config": conditions.model_dump()}}}

    return job_of(
        ask_models,
        names.name(EXTRACT_BATCH),
        "Ask the models about one batch, or a backfill of many, on any machine, for the ledger that machines share. "
        "Indexing then finds the answers there.",
        EXTRACT,
        dg.PartitionedConfig(names.batches, run_config_for_partition_key_fn=config_of),
    )


def job_of(
    step: dg.OpDefinition,
    name: str,
    description: str,
    tags: Mapping[str, str] | None = None,
    config: dg.PartitionedConfig | None = None,
) -> dg.JobDefinition:
    """Return the job of one step; with `config` it is partitioned."""
    graph = dg.GraphDefinition(name=name, node_defs=[step])
    return graph.to_job(description=description, tags=tags, config=config, executor_def=dg.in_process_executor)


def document_batches_sensor(names: IndexNames, job: Any, automated: bool) -> dg.SensorDefinition:
    """Return the sensor that launches the job update_index."""

    @dg.sensor(
        name=names.name(DOCUMENT_BATCHES_SENSOR),
        job=job,
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING if automated else dg.DefaultSensorStatus.STOPPED,
        required_resource_keys={names.resource},
        description="Watches the input folder: launches update_index for new, edited and deleted batches.",
    )
    @masked_errors()
    def document_batches_sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return request_update(names, names.index(context.resources), context.instance, time.time())

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
    batches = {"batches": due} if due else {"which": BatchSelection.NOTHING.name}
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
        required_resource_keys={names.resource},
        description="Fails runs whose process has ended without a report, such as after a power cut: Dagster would "
        "wait. Registers the batches of a new index, so that *Materialize all* can be used.",
    )
    @masked_errors()
    def dead_runs_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        instance = context.instance
        if not instance.get_dynamic_partitions(names.name(DOCUMENT_BATCHES)):
            with contextlib.suppress(GraphRAGError):  # such as a missing folder: a run says what is wrong
                register_batches(names, instance, scan(names.index(context.resources)).batches)
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
