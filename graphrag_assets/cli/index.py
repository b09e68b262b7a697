"""`index`: every changed batch, then the global assets, as Dagster runs in this process, with progress."""

import contextlib
import logging
import os
import time
from collections.abc import Iterator

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from graphrag_assets.cli.bill import bill_of
from graphrag_assets.cli.status import print_rows
from graphrag_assets.cli.tables import print_table
from graphrag_assets.cli.terminal import Console, printable
from graphrag_assets.definitions import defs
from graphrag_assets.defs.dagster_home import dagster_instance
from graphrag_assets.defs.index_names import PUBLICATION, IndexNames
from graphrag_assets.defs.runs import NOT_PUBLISHED, IndexRun, Runner, register_batches
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.embedded.caseless import without_names
from graphrag_assets.errors import InputError
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.publish import publish_records
from graphrag_assets.indexing.scan import Scan, scan_input
from graphrag_assets.store.batches import languages_extracted_by
from graphrag_assets.store.imports import unfinished
from graphrag_assets.store.publication_files import current_number
from graphrag_assets.store.publications import state_in_words

console = Console()
_REFRESH = "graph, communities, reports, embeddings, publication"
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_index(input_folder: str | None, batches: tuple[str, ...], everything: bool, replace: bool) -> bool:
    """Index and publish; returns whether all runs succeeded. Prints progress and a summary.

    The runs are recorded where the Dagster UI of this index shows them, once it has a Dagster home.

    Raises:
        InputError: the input folder cannot be read, is not the one of this index, or has no such batch; an import
            is unfinished.
    """
    if input_folder:
        os.environ["GRAPHRAG_INPUT"] = input_folder
    index, names = Index.from_environment(), IndexNames()
    _refuse_unfinished_imports(index)
    found = scan_input(index, replace)
    if not found.digests and not index.input_folder.unusable_names():
        folder = index.settings.input_folder
        console.print(Text(f"The input folder {folder} is empty. Put documents into it."), soft_wrap=True)
    todo = _choose(index, found, batches, everything)
    started = time.monotonic()
    with dagster_instance(index.settings) as instance, _progress() as progress, _progress_log(progress):
        register_batches(names, instance, found)
        runner, runs = Runner(names, defs().get_repository_def().get_job, instance, _QUIET), list[IndexRun]()
        before = current_number(index.settings.index_folder)
        try:
            for run in _execute(runner, index, todo, progress):
                runs.append(run)
        except KeyboardInterrupt:
            published = current_number(index.settings.index_folder) != before
            what = "the publication is new" if published else "nothing new is published"
            n_done = sum(run.batch is not None and run.result.success for run in runs)
            console.print(f"{n_done} of {len(todo)} batches are indexed, {what}.", highlight=False, soft_wrap=True)
            raise
        finally:
            if not any(run.batch is None and run.result.success for run in runs):
                publish_records(index)
    n_kept, n_deleted = len(set(found.unchanged) - set(todo)), len(set(found.deleted) & set(todo))
    _summarize(index, runs, todo, n_kept, n_deleted, time.monotonic() - started)
    return all(run.result.success for run in runs)


def _refuse_unfinished_imports(index: Index) -> None:
    """After an interrupted import, communities would be clustered, and paid for, instead of imported."""
    for batch, origin in unfinished(index.working).iter_rows() if index.working.path.exists() else ():
        raise InputError(
            f"The import of {origin} as {batch!r} was interrupted. Run the same import again (`import {origin} --name "
            f"{batch}`), or remove it with `import --remove {batch}`."
        )


def _execute(runner: Runner, index: Index, batches: list[str], progress: Progress) -> Iterator[IndexRun]:
    """One run per batch, then one for everything global; a failed batch does not stop the others."""
    task = progress.add_task("", total=len(batches) + 1)
    for batch in batches:
        progress.update(task, description=escape(printable(f"batch {batch}")))
        run = runner.index(batch)
        yield run
        progress.advance(task)
        if run.is_out_of_budget:
            return
    progress.update(task, description=_REFRESH)
    yield runner.refresh(index)
    progress.advance(task)


def _choose(index: Index, found: Scan, batches: tuple[str, ...], everything: bool) -> list[str]:
    """The batches to index: the requested ones, or those that differ from the index."""
    unknown = [batch for batch in batches if batch not in found.known]
    if unknown:
        raise InputError(
            f"No batch {', '.join(map(repr, unknown))} in {index.settings.input_folder}. "
            f"It has: {', '.join(found.known) or 'nothing'}. A batch is an entry directly under the input folder."
        )
    return list(batches) or (found.known if everything else found.due)


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


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def _summarize(
    index: Index,
    runs: list[IndexRun],
    todo: list[str],
    n_kept: int,
    n_deleted: int,
    seconds: float,
) -> None:
    """Print the result: tables if anything changed, then a summary line, then the failures."""
    run_ids = [run.result.run_id for run in runs]
    if todo:
        print_rows(console, index.working)
        _print_stages(index, run_ids)
    if bill := bill_of(index, run_ids):
        print_table(console, bill)
    skipped = index.working.read("SELECT count(*) FROM index_errors").item()
    removed = f" ({n_deleted} of them deleted)" if n_deleted else ""
    failed = [run for run in runs if not run.result.success]
    n_failed = sum(run.batch is not None for run in failed)
    n_indexed = sum(run.batch is not None for run in runs) - n_failed
    left = f", {n_failed} failed" if n_failed else ""
    console.print(
        f"Batches: {n_indexed} indexed{removed}{left}, {n_kept} unchanged. Rows in index_errors: {skipped}. "
        f"Indexing took {seconds:.1f} s.",
        highlight=False,
        soft_wrap=True,
    )
    if note := without_names(languages_extracted_by(index.working, EXTRACTOR)):
        console.print(Text(f"{note}."), soft_wrap=True)
    for run in failed:
        name = _REFRESH if run.batch is None else f"batch {run.batch}"
        console.print(Text.assemble(("Failed: ", "bold red"), f"{name}: {run.reason}"), soft_wrap=True)
    if any(run.is_out_of_budget for run in failed):
        console.print(NOT_PUBLISHED, highlight=False, soft_wrap=True)
        return
    refresh = runs[-1].result
    for event in refresh.asset_materializations_for_node(PUBLICATION) if refresh.success else []:
        number, is_new = int(str(event.metadata["publication"].value)), bool(event.metadata["new"].value)
        console.print(Text(state_in_words(index.settings.index_folder, number, is_new)), soft_wrap=True)


def _print_stages(index: Index, run_ids: list[str]) -> None:
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
