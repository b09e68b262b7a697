"""`status`: what is indexed, what was skipped, what is published; `doctor`: whether each configured model answers."""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.contracts.records import OF_READ_TEXT, problems_in_words
from graphrag_assets.contracts.usage import UsageMeter
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.settings import Settings, Use
from graphrag_assets.store import schema
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.index_files import current_number, publication_file

if TYPE_CHECKING:
    from graphrag_assets.llm.backend import Check

_SHOWN_ERRORS = 20


@click.command()
def status() -> None:
    """Show rows per table and batch, skipped input and the current publication."""
    console = Console()
    settings = Settings.load()
    working = IndexDatabase(settings.index_folder / "working.duckdb")
    if not working.path.exists():
        console.say(f"Nothing is indexed yet in {settings.index_folder}. Run `graphrag-assets index`.")
        return
    _print_rows(console, working)
    errors = working.read("SELECT batch, source, row_number, error, hint, stage FROM index_errors ORDER BY ALL")
    if errors.height:
        console.say(f"{problems_in_words(errors['stage'])}:")
        for batch, source, row, error, hint, _ in errors.head(_SHOWN_ERRORS).iter_rows():
            place = (source if source == batch else f"{batch}: {source}") + ("" if row is None else f", row {row}")
            console.say(f"  {place}: {error.rstrip('.')}. {hint or ''}".rstrip())
        if (more := errors.height - _SHOWN_ERRORS) > 0:
            console.say(f"  … and {more} more: open {working.path}, SELECT * FROM index_errors")
    console.say(f"Method: {settings.method_in_words}")
    number = current_number(settings.index_folder)
    current = "none yet" if number is None else publication_file(Path(), number).as_posix()
    publications = dict(working.read("SELECT number, published_at FROM publication").iter_rows())
    when = f", made {publications[number]:%Y-%m-%d %H:%M} UTC" if number in publications else ""
    newest = max(publications, default=0)
    back = f"; readers were rolled back from {newest}" if number and number < newest else ""
    console.say(f"Current publication: {current}{when}{back}")


def _print_rows(console: Console, working: IndexDatabase) -> None:
    """Print the rows of each batch and of each table."""
    skipped = "(SELECT count(*) FROM index_errors e WHERE e.batch = b.batch AND NOT list_contains($read, e.stage))"
    rows = working.read(
        f"SELECT batch, n_documents, n_text_units, {skipped} FROM batch_state b "
        "WHERE n_documents > 0 OR n_errors > 0 ORDER BY batch",
        {"read": list(OF_READ_TEXT)},
    )
    batches = table_of("batch", numbers=("documents", "text units", "skipped"), title="rows per batch")
    for batch, *counts in rows.iter_rows():
        batches.add_row(Text(batch), *(f"{count:,}" for count in counts))
    print_table(console, batches)
    whole = table_of("table", numbers=["rows"], title="rows per table")
    for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES):
        whole.add_row(table.name, f"{working.read(f'SELECT count(*) FROM {table.name}').item():,}")
    print_table(console, whole)


@click.command()
def doctor() -> None:
    """Ask each configured model one tiny question."""
    console, settings = Console(), Settings.load()
    console.say(f"Method: {settings.method_in_words}")
    table = table_of("tasks", "model", "reply", numbers=("tokens", "seconds", "US$"))
    errors = list[str]()
    with console.status("Asking the models"):
        for tasks, model, ask, usage in _questions(settings):
            began = time.monotonic()
            try:
                reply = ask()
            except GraphRAGError as error:
                reply = "failed"
                errors.append(f"{tasks}: {error}")
            tokens, seconds = usage.total.prompt_tokens + usage.total.completion_tokens, time.monotonic() - began
            table.add_row(tasks, model, reply, f"{tokens:,}", f"{seconds:.1f}", f"{usage.total.cost_usd:.6f}")
    if not table.row_count:
        console.say("No model is set: the embedded default needs none.")
        return
    print_table(console, table)
    for line in errors:
        console.say(line)
    if errors:
        sys.exit(1)


def _questions(settings: Settings) -> Iterator[tuple[str, str, Callable[[], str], UsageMeter]]:
    """Yield the tasks and name of each model, what asks it a tiny question, and its usage."""
    if settings.embeds_locally:
        from graphrag_assets.embedded import encoder_of

        def embed() -> str:
            (vector,) = encoder_of(settings.embedding_model).embed(["ready"])
            return f"{len(vector)} dimensions"

        yield "embeddings", settings.embedding_model, embed, UsageMeter()
    tasks: dict[Use, list[str]] = {"extraction": settings.model_tasks} if settings.model_tasks else {}
    if settings.model_of("query"):
        tasks["query"] = ["questions"]
    if tasks or settings.embeds_remotely:
        from graphrag_assets.llm.backend import model_checks  # imports litellm

        for check in model_checks(settings, tasks):
            yield ", ".join(check.tasks), check.options.where, partial(_ask, check), check.usage


def _ask(check: "Check") -> str:
    from graphrag_assets.llm.event_loop import wait_for

    return wait_for(check.ask())
