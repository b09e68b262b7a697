"""The run of `index`: the job update_index in this process, with its progress on the terminal."""

import contextlib
import logging
from collections.abc import Iterator, Sequence

import dagster as dg
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import BATCH_STATE
from graphrag_assets.assets.run_in_process import Updated, update_index
from graphrag_assets.cli.terminal import Console
from graphrag_assets.runtime.outgoing import printable
from graphrag_assets.store.index_files import current_number


def execute(index: Index, batches: Sequence[str], console: Console) -> Updated:
    """Index the batches, then refresh and publish; a failed batch does not stop the others."""
    before, left = current_number(index.settings.index_folder), list(batches)
    try:
        with _progress(console) as progress, _progress_log(progress):
            task = progress.add_task(_named(left), total=len(batches) + 1)

            def show(event: dg.DagsterEvent) -> None:
                if event.event_type == dg.DagsterEventType.STEP_START and event.step_key != BATCH_STATE:
                    progress.update(task, description=str(event.step_key).replace("_", " "))
                if event.is_step_materialization and event.partition in left:
                    left.remove(event.partition)
                    progress.update(task, description=_named(left), advance=1)

            done = update_index(index, batches, show)
            progress.advance(task)
            return done
    except KeyboardInterrupt:
        is_new = current_number(index.settings.index_folder) != before
        what = "the publication is new" if is_new else "nothing new is published"
        console.say(f"{len(batches) - len(left)} of {len(batches)} batches are indexed, {what}.")
        raise


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
