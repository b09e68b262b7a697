"""Fails runs whose process has ended without a report, such as after a power cut; Dagster would wait for them."""

import dagster as dg
import psutil

from graphrag_assets.assets.index_names import DEAD_RUNS_SENSOR, IndexNames


def dead_runs_sensor(names: IndexNames) -> dg.SensorDefinition:
    """The sensor of the runs of one index. It is always on, and starts nothing."""

    @dg.sensor(
        name=names.name(DEAD_RUNS_SENSOR),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Fails runs whose process has ended without a report, such as after a power cut; Dagster would "
        "wait.",
    )
    def dead_runs_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        """Fail every run of the index whose process on this machine has ended."""
        if not isinstance(context.instance.run_launcher, dg.DefaultRunLauncher):
            return dg.SkipReason("Another run launcher is in use; it monitors its runs.")
        failed = fail_dead_runs(names, context.instance)
        return dg.SkipReason(
            f"Failed {len(failed)} orphaned runs: {', '.join(failed)}" if failed else "No run is orphaned."
        )

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
    """The process of a run, and when it said so: a run may have been in the queue for hours before."""
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
