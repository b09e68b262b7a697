"""Fails runs whose process has ended without a report, such as after a power cut; Dagster would wait for them."""

import dagster as dg
import psutil


def dead_runs_sensor(automated: bool) -> dg.SensorDefinition:
    """The sensor, for the whole Dagster instance."""

    @dg.sensor(
        name="dead_runs_sensor",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING if automated else dg.DefaultSensorStatus.STOPPED,
        description="Fails runs whose process has ended without a report, such as after a power cut; Dagster would "
        "wait.",
    )
    def dead_runs_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        """Fail every run whose process on this machine has ended without a report."""
        if not isinstance(context.instance.run_launcher, dg.DefaultRunLauncher):
            return dg.SkipReason("Another run launcher is in use; it monitors its runs.")
        failed = fail_orphaned_runs(context.instance)
        return dg.SkipReason(
            f"Failed {len(failed)} orphaned runs: {', '.join(failed)}" if failed else "No run is orphaned."
        )

    return dead_runs_sensor


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
