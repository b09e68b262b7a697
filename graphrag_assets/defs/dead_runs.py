"""Fails runs whose process has ended without a report, such as after a power cut; Dagster would wait for them."""

import json
from collections.abc import Collection
from typing import Any

import dagster as dg
import psutil

from graphrag_assets.defs.index_names import DEAD_RUNS_SENSOR, IndexNames

_TASK = "dagster-celery/task_id"
_REPLY_SECONDS = 5.0


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
        """Fail every run of the index whose process on this machine, or whose Celery worker, has ended."""
        if (tasks := _celery_tasks(context.instance)) is not None:
            missing = frozenset(json.loads(context.cursor or "[]"))
            failed, missing = fail_runs_without_worker(names, context.instance, tasks, missing)
            context.update_cursor(json.dumps(sorted(missing)))
        elif isinstance(context.instance.run_launcher, dg.DefaultRunLauncher):
            failed = fail_dead_runs(names, context.instance)
        else:
            return dg.SkipReason("Another run launcher is in use; it monitors its runs.")
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


def fail_runs_without_worker(
    names: IndexNames, instance: dg.DagsterInstance, tasks: Collection[str], missing: Collection[str]
) -> tuple[list[str], frozenset[str]]:
    """Fail started runs of an index that no Celery worker has had twice in a row; `tasks`: those that workers have now.

    Args:
        missing: the runs that no worker had at the last tick.

    Returns:
        The failed runs, and the runs that no worker has now.
    """
    started = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]))
    own = (run for run in started if _TASK in run.tags and names.has_run(run))
    lost = {run.run_id: run for run in own if run.tags[_TASK] not in tasks}
    failed = sorted(lost.keys() & set(missing))
    for run_id in failed:
        instance.report_run_failed(lost[run_id], "No Celery worker has this run anymore: its machine or process ended.")
    return failed, frozenset(lost.keys() - set(failed))


def celery_of(instance: dg.DagsterInstance) -> Any | None:
    """The Celery app of the run launcher; None with another run launcher."""
    launcher: Any = instance.run_launcher
    # By its name: the import takes a second and 8 MB of each idle code location.
    return launcher.celery if type(launcher).__name__ == "CeleryRunLauncher" else None


def _celery_tasks(instance: dg.DagsterInstance) -> set[str] | None:
    """The tasks that Celery's workers are doing; None with another run launcher.

    The result backend keeps saying that a task has started when its machine has lost power.
    """
    celery = celery_of(instance)
    if celery is None:
        return None
    replies = celery.control.inspect(timeout=_REPLY_SECONDS).active() or {}
    return {task["id"] for tasks in replies.values() for task in tasks}


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
