"""Runs of `index`: one per changed batch, then one for everything after the batches, with progress."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from graphrag_assets.cli.terminal import Console
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.publish import publish_records
from graphrag_assets.indexing.scan import Scan
from graphrag_assets.indexing.stage_runner import StageRun, StageRunner
from graphrag_assets.outgoing import printable
from graphrag_assets.store.publication_files import current_number

if TYPE_CHECKING:
    from graphrag_assets.defs.runs import IndexRun, Runner

REFRESH = "graph, communities, reports, embeddings, publication"
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def execute(index: Index, found: Scan, todo: Sequence[str], console: Console) -> "Sequence[StageRun | IndexRun]":
    """Index the batches `todo`, then refresh; a failed batch does not stop the others.

    In an index with a Dagster home these are Dagster runs, which its UI shows.
    """
    with _runner(index, found) as runner, _progress(console) as progress, _progress_log(progress):
        runs = list["StageRun | IndexRun"]()
        before = current_number(index.settings.index_folder)
        try:
            for run in _execute(runner, index, todo, progress):
                runs.append(run)
        except KeyboardInterrupt:
            published = current_number(index.settings.index_folder) != before
            what = "the publication is new" if published else "nothing new is published"
            n_done = sum(run.batch is not None and run.success for run in runs)
            console.say(f"{n_done} of {len(todo)} batches are indexed, {what}.")
            raise
        finally:
            if not any(run.batch is None and run.success for run in runs):
                publish_records(index)
    return runs


@contextlib.contextmanager
def _runner(index: Index, found: Scan) -> "Iterator[StageRunner | Runner]":
    home = index.settings.dagster_home
    if home is None:
        yield StageRunner(index)
        return
    from graphrag_assets.definitions import defs
    from graphrag_assets.defs.dagster_home import dagster_instance
    from graphrag_assets.defs.index_names import IndexNames
    from graphrag_assets.defs.runs import Runner, register_batches

    names = IndexNames()
    with dagster_instance(home) as instance:
        register_batches(names, instance, found)
        yield Runner(names, defs().get_repository_def().get_job, instance, _QUIET)


def _execute(
    runner: "StageRunner | Runner", index: Index, batches: Sequence[str], progress: Progress
) -> "Iterator[StageRun | IndexRun]":
    """One run per batch, then one for everything global; a failed batch does not stop the others."""
    task = progress.add_task("", total=len(batches) + 1)
    for batch in batches:
        progress.update(task, description=escape(printable(f"batch {batch}")))
        run = runner.index(batch)
        yield run
        progress.advance(task)
        if run.not_published:
            return
    progress.update(task, description=REFRESH)
    yield runner.refresh(index)
    progress.advance(task)


class _ProgressLog(logging.Handler):
    """Shows the pipeline's progress lines above the bar."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.INFO)
        self.progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self.progress.console.print(Text(f"  {record.getMessage()}", style="dim"))


@contextlib.contextmanager
def _progress_log(progress: Progress) -> Iterator[None]:
    logger, handler = logging.getLogger("graphrag_assets"), _ProgressLog(progress)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _progress(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
