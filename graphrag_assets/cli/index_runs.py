"""Runs of `index`: one per changed batch, then one for everything after the batches, with progress."""

import contextlib
import functools
import logging
from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from graphrag_assets.cli.terminal import Console
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.scan import Scan
from graphrag_assets.indexing.stage_runner import StageRun, StageRunner
from graphrag_assets.runtime.outgoing import printable
from graphrag_assets.store.publication_files import current_number

REFRESH = "graph, communities, reports, embeddings, publication"


def execute(index: Index, found: Scan, todo: Sequence[str], console: Console) -> Sequence[StageRun]:
    """Index the batches `todo`, then refresh; a failed batch does not stop the others.

    What they have written is reported to the Dagster home of the index, if it has one.
    """
    with _reported(index, found, todo), _progress(console) as progress, _progress_log(progress):
        runs = list[StageRun]()
        before = current_number(index.settings.index_folder)
        try:
            for run in _execute(StageRunner(index), index, todo, progress):
                runs.append(run)
        except KeyboardInterrupt:
            published = current_number(index.settings.index_folder) != before
            what = "the publication is new" if published else "nothing new is published"
            n_done = sum(run.batch is not None and run.success for run in runs)
            console.say(f"{n_done} of {len(todo)} batches are indexed, {what}.")
            raise
    return runs


@contextlib.contextmanager
def _reported(index: Index, found: Scan, todo: Sequence[str]) -> Iterator[None]:
    """Tell the Dagster home of the index what its batches are before, and what the index contains after the block."""
    home = index.settings.dagster_home
    if home is None:
        yield
        return
    from graphrag_assets.defs.dagster_home import dagster_instance, report_contents
    from graphrag_assets.defs.index_names import IndexNames
    from graphrag_assets.defs.registration import register_batches

    names = IndexNames()
    with dagster_instance(home) as instance:
        register_batches(names, instance, found)
        try:
            yield
        finally:
            report_contents(instance, names, index, todo)


def _execute(runner: StageRunner, index: Index, batches: Sequence[str], progress: Progress) -> Iterator[StageRun]:
    """One run per batch, then one for everything global; a failed batch does not stop the others."""
    to_publish = True
    task, left = progress.add_task("", total=len(batches) + 1), list(batches)
    show = functools.partial(progress.update, task)
    show(description=_named(left))
    with contextlib.closing(runner.index(batches)) as runs:
        for run in runs:
            yield run
            left.remove(str(run.batch))
            show(description=_named(left), advance=1)
            to_publish = to_publish and not run.not_published
    if not to_publish:
        return
    progress.update(task, description=REFRESH)
    yield runner.refresh(index)
    progress.advance(task)


def _named(batches: Sequence[str]) -> str:
    """The first of the batches to come, and the number of the others."""
    more = f" and {len(batches) - 1} more" if len(batches) > 1 else ""
    return escape(printable(f"batch {batches[0]}{more}")) if batches else ""


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
