"""`index`: scan the input folder, index what changed, publish, and print a summary.

Dagster is imported only when something is due: its import would be most of the work.
"""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
import polars as pl
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from graphrag_assets.assets.index import Index, existing_ledger
from graphrag_assets.assets.publication import up_to_date
from graphrag_assets.assets.scan import BatchSelection, retry_given_up, scan_input
from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.runtime.outgoing import printable
from graphrag_assets.store.batches import languages_extracted_by
from graphrag_assets.store.index_files import current_number
from graphrag_assets.store.publications import state_in_words
from graphrag_assets.text.languages import without_names

if TYPE_CHECKING:
    import dagster as dg

    from graphrag_assets.assets.run_in_process import Updated

_HITS = """
SELECT used.task AS task, sum(used.ledger_hits)::BIGINT AS ledger_hits
FROM (SELECT unnest(usage) AS used FROM index_runs WHERE run_id = $run)
GROUP BY used.task
"""
_AFTER_THE_BATCHES = "graph, communities, reports, embeddings, publication"
_COLUMNS = {
    "answers": "paid answers",
    "ledger_hits": "in ledger",
    "prompt_tokens": "prompt tokens",
    "cached_tokens": "of them cached",
    "completion_tokens": "answer tokens",
    "cost_usd": "US$",
}


@click.command()
@click.option("--input", "input_folder", help="Input folder or URL. Default: GRAPHRAG_INPUT, or data/input.")
@click.option("--batch", "batches", multiple=True, help="Index only this batch; may be given several times.")
@click.option("--all", "everything", is_flag=True, help="Index unchanged batches again, too.")
@click.option(
    "--retry", is_flag=True, help="Request again, and pay for, what two runs got no valid answer to, see index_errors."
)
@click.option("--replace", is_flag=True, help="Replace the contents of the index with another input folder.")
def index(input_folder: str | None, batches: tuple[str, ...], everything: bool, retry: bool, replace: bool) -> None:
    """Index the changed batches of the input folder, refresh the graph and publish."""
    started, console = time.monotonic(), Console()
    if input_folder:
        os.environ["GRAPHRAG_INPUT"] = input_folder
    index = Index.from_environment()
    scanned = scan_input(index, replace)
    if retry:
        retry_given_up(index)
    which = BatchSelection.ALL if everything else BatchSelection.CHANGED
    todo = scanned.chosen(which, batches)
    if retry and not batches and not everything:
        todo = [*todo, *scanned.given_up]
    is_imported_alone = scanned.imported and not scanned.deleted
    if not scanned.digests and not is_imported_alone and not scanned.unusable:
        has_index = scanned.imported or current_number(index.settings.index_folder)
        effect = "The index loses the documents that it had from it." if has_index else "Nothing is published."
        console.say(
            f"The input folder {index.settings.input_folder} is empty. {effect} Put documents into it and run "
            "`graphrag-assets index` again."
        )
        if not has_index:
            return
    done: Updated | None = None
    if not todo and not everything and (publication := up_to_date(index, scanned)):
        published: tuple[int, bool] | None = (publication.number, publication.is_new)
    else:
        done = _execute(index, todo, console)
        published = done.published
    n_kept, n_deleted = len(set(scanned.unchanged) - set(todo)), len(set(scanned.deleted) & set(todo))
    _summarize(console, index, done, n_kept, n_deleted, time.monotonic() - started)
    if published:
        console.say(state_in_words(index.settings.index_folder, *published))
    if done and (done.failed or done.reason):
        sys.exit(1)


def _execute(index: Index, batches: Sequence[str], console: Console) -> "Updated":
    """Index the batches, then refresh and publish; a failed batch does not stop the others."""
    from graphrag_assets.assets.run_in_process import update_index  # imports Dagster

    before, left = current_number(index.settings.index_folder), list(batches)
    try:
        with console.status(_first_of(left)) as status, _progress_lines(console):

            def show(event: "dg.DagsterEvent") -> None:
                if event.event_type_value == "STEP_START" and event.step_key != "batch_state":
                    status.update(str(event.step_key).replace("_", " "))
                if event.is_step_materialization and event.partition in left:
                    left.remove(event.partition)
                    status.update(_first_of(left))

            return update_index(index, batches, show)
    except KeyboardInterrupt:
        is_new = current_number(index.settings.index_folder) != before
        what = "the publication is new" if is_new else "nothing new is published"
        console.say(f"{len(batches) - len(left)} of {len(batches)} batches are indexed, {what}.")
        raise


def _first_of(batches: Sequence[str]) -> str:
    """Return the first of the batches to come, and the number of the others."""
    more = f" and {len(batches) - 1} more" if len(batches) > 1 else ""
    return escape(printable(f"batch {batches[0]}{more}")) if batches else ""


@contextlib.contextmanager
def _progress_lines(console: Console) -> Iterator[None]:
    """Print the pipeline's lines on progress."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            console.print(Text(f"  {record.getMessage()}", style="dim"))

    logger, handler = logging.getLogger("graphrag_assets"), Handler(logging.INFO)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _summarize(
    console: Console, index: Index, done: "Updated | None", n_kept: int, n_deleted: int, seconds: float
) -> None:
    """Print the bill, a summary line, and the failures."""
    if done and (bill := _bill(index, done.run_id)):
        print_table(console, bill)
    skipped = index.working.read("SELECT count(*) FROM index_errors").item()
    removed = f" ({n_deleted} of them deleted)" if n_deleted else ""
    left = f", {len(done.failed)} failed" if done and done.failed else ""
    console.say(
        f"Batches: {len(done.indexed) if done else 0} indexed{removed}{left}, {n_kept} unchanged. "
        f"Rows in index_errors: {skipped}. Indexing took {seconds:.1f} s."
    )
    if skipped:
        console.say("`graphrag-assets status` shows the rows of index_errors, with what to do.")
    if note := without_names(languages_extracted_by(index.working, EXTRACTOR)):
        console.say(f"{note}.")
    if not done:
        return
    reasons = {f"batch {batch}": reason for batch, reason in done.failed.items()}
    reasons |= {_AFTER_THE_BATCHES: done.reason} if done.reason else {}
    for name, reason in reasons.items():
        console.print(Text.assemble(("Failed: ", "bold red"), f"{name}: {reason}"), soft_wrap=True)
    if done.not_published:
        console.say(done.not_published)
    for warning in done.warnings:
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning), soft_wrap=True)


def _bill(index: Index, run_id: str) -> Table | None:
    """Answers paid for and found in the ledger, tokens and dollars by task; None if no model was asked.

    An answer is that of a chat, or the vector of a text; several may come from one request. What failed stages have
    paid for is included; their answers from the ledger are not, since nothing records them.
    """
    ledger = existing_ledger(index.settings)
    if ledger is None:
        return None
    paid = ledger.paid_by([run_id])
    hits = index.working.read(_HITS, {"run": run_id})
    rows = paid.join(hits, on="task", how="full", coalesce=True).fill_null(0).sort("task")
    rows = rows.filter(pl.any_horizontal(pl.col("answers", "ledger_hits") > 0)).select("task", *_COLUMNS)
    if rows.is_empty():
        return None
    table = table_of("task", numbers=_COLUMNS.values(), title="what models did")
    for row in [*rows.iter_rows(), ("in all", *rows.drop("task").sum().row(0))]:
        table.add_row(*map(_as_text, row), end_section=row[0] == rows["task"][-1])
    return table


def _as_text(value: str | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}" if isinstance(value, float) else value
