"""`index`: every changed batch, then the global assets, as Dagster runs in this process, with progress."""

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Iterator

import dagster as dg
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from graphrag_assets.cli.status import print_rows
from graphrag_assets.definitions import defs
from graphrag_assets.defs.partitions import document_batches
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.defs.scanning import record_unusable_names, scan
from graphrag_assets.errors import InputError
from graphrag_assets.settings import Settings

console = Console()
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_index(input_folder: str | None, batches: tuple[str, ...], everything: bool) -> bool:
    """Index and publish; returns whether all runs succeeded. Prints progress and a summary.

    With DAGSTER_HOME set the runs are recorded there and show in the Dagster UI; otherwise nowhere.
    """
    if input_folder:
        os.environ["GRAPHRAG_INPUT"] = input_folder
    settings = Settings.load()
    index = GraphIndex(database=str(settings.index_folder / "working.duckdb"))
    instance = dg.DagsterInstance.get() if os.environ.get("DAGSTER_HOME") else dg.DagsterInstance.ephemeral()
    todo, kept = _choose(index, batches, everything)
    started = time.monotonic()
    with instance, _progress() as progress, _progress_log(progress):
        instance.add_dynamic_partitions(str(document_batches.name), [*todo, *kept])
        runs = dict(_execute(instance, todo, progress))
    _summarise(index, [run.run_id for run in runs.values()], len(todo), len(kept), time.monotonic() - started)
    failed = {name: _reason(run) for name, run in runs.items() if not run.success}
    for name, reason in failed.items():
        console.print(f"[bold red]Failed[/] {name}: {reason}", highlight=False)
    return not failed


def _execute(
    instance: dg.DagsterInstance, batches: list[str], progress: Progress
) -> Iterator[tuple[str, dg.ExecuteInProcessResult]]:
    """One run per batch, then one for everything global; a failed batch does not stop the others."""
    repository = defs().get_repository_def()
    steps = [*(("index_batches", batch) for batch in batches), ("refresh_graph", None)]
    task = progress.add_task("", total=len(steps))
    for job, batch in steps:
        name = f"batch {batch}" if batch else "graph, communities, reports, embeddings, publication"
        progress.update(task, description=name)
        yield (
            name,
            repository.get_job(job).execute_in_process(
                partition_key=batch, instance=instance, raise_on_error=False, run_config=_QUIET
            ),
        )
        progress.advance(task)


def _choose(index: GraphIndex, batches: tuple[str, ...], everything: bool) -> tuple[list[str], list[str]]:
    """Batches to index, and batches left as they are."""
    record_unusable_names(index)
    found = scan(index)
    known = [*found.changed, *found.unchanged, *found.gone]
    unknown = [batch for batch in batches if batch not in known]
    if unknown:
        raise InputError(
            f"No batch {', '.join(map(repr, unknown))} in {index.settings.input_folder}. "
            f"It has: {', '.join(known) or 'nothing'}. A batch is an entry directly under the input folder."
        )
    due = [*found.changed, *found.gone, *(found.unchanged if everything else ())]
    todo = list(batches) or due
    return todo, [batch for batch in found.unchanged if batch not in todo]


class _ProgressLog(logging.Handler):
    """Shows the pipeline's progress lines above the bar."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.INFO)
        self.progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self.progress.console.print(f"  {record.getMessage()}", style="dim", highlight=False)


@contextlib.contextmanager
def _progress_log(progress: Progress) -> Iterator[None]:
    logger, handler = logging.getLogger("graphrag_assets"), _ProgressLog(progress)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def _reason(run: dg.ExecuteInProcessResult) -> str:
    """Why a run failed: the failed steps' errors, or the blocking checks that did not pass."""
    errors: Iterable[str] = (
        (event.step_failure_data.error.cause or event.step_failure_data.error).message.strip().splitlines()[0]
        for event in run.all_events
        if event.is_step_failure and event.step_failure_data.error
    )
    checks = [e.check_name for e in run.get_asset_check_evaluations() if not e.passed and e.blocking]
    return "; ".join([*errors, *(f"check {name} does not hold" for name in checks)]) or "see the Dagster log"


def _summarise(index: GraphIndex, run_ids: list[str], n_indexed: int, n_kept: int, seconds: float) -> None:
    print_rows(console, index.working)
    stages = index.working.read(
        "SELECT stage, sum(rows)::BIGINT AS n, sum(inserted)::BIGINT, sum(deleted)::BIGINT, "
        "round(sum(seconds), 1), round(n / sum(seconds))::BIGINT "
        "FROM index_runs WHERE run_id IN (SELECT unnest($runs::VARCHAR[])) GROUP BY stage ORDER BY min(committed_at)",
        {"runs": run_ids},
    )
    table = Table("stage", title="what this run did")
    for column in ("rows", "written", "removed", "seconds", "rows/s"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in stages.iter_rows():
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row))
    console.print(table)
    skipped = index.working.read("SELECT count(*) FROM index_errors").item()
    console.print(
        f"Batches: {n_indexed} indexed, {n_kept} unchanged. Rows in index_errors: {skipped}. Seconds: {seconds:.1f}.\n"
        f"Published: {index.settings.index_folder / 'graphrag.duckdb'}",
        highlight=False,
        soft_wrap=True,
    )
