"""`status`: what is indexed, what was skipped, what is published; `doctor`: whether each configured model answers."""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
from rich.text import Text

from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.contracts.records import OF_READ_TEXT, problems_in_words
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.settings import Settings, Use
from graphrag_assets.store import schema
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.index_files import current_number, publication_file

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
    print_rows(console, working)
    errors = working.read("SELECT batch, source, row_number, error, hint, stage FROM index_errors ORDER BY ALL")
    if errors.height:
        console.say(f"{problems_in_words(errors['stage'])}:")
        for batch, source, row, error, hint, _ in errors.head(_SHOWN_ERRORS).iter_rows():
            place = f"{batch}: {source}" + ("" if row is None else f", row {row}")
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


_SHORT = {
    "documents": "docs",
    "text_units": "units",
    "entity_mentions": "entities",
    "relationship_mentions": "relations",
    "covariates": "claims",
}


def print_rows(console: Console, working: IndexDatabase, only: Sequence[str] | None = None) -> None:
    """Print the rows of each batch, or of those in `only`, and of the whole index."""
    counts = ", ".join(f"(SELECT count(*) FROM {name} t WHERE t.batch = b.batch)" for name in _SHORT)
    rows = working.read(
        f"SELECT b.batch, {counts}, (SELECT count(*) FROM index_errors e WHERE e.batch = b.batch AND NOT "
        "list_contains($of_read_text::VARCHAR[], e.stage)) FROM batch_state b "
        "WHERE (b.n_documents > 0 OR b.n_errors > 0) "
        "AND ($only IS NULL OR list_contains($only::VARCHAR[], b.batch)) ORDER BY b.batch",
        {"only": None if only is None else list(only), "of_read_text": list(OF_READ_TEXT)},
    )
    batches = table_of("batch", numbers=(*_SHORT.values(), "skipped"), title="rows per batch")
    for row in rows.iter_rows():
        batches.add_row(Text(str(row[0])), *(f"{value:,}" for value in row[1:]))
    print_table(console, batches)
    totals = " UNION ALL ".join(
        f"SELECT {place} AS place, '{table.name}' AS name, count(*) AS n FROM {table.name}"
        for place, table in enumerate((*schema.BATCH_TABLES, *schema.GLOBAL_TABLES))
    )
    whole = table_of("table", numbers=["rows"], title="rows per table")
    for name, count in working.read(f"SELECT name, n FROM ({totals}) ORDER BY place").iter_rows():
        whole.add_row(name, f"{count:,}")
    print_table(console, whole)


class CheckedModel(NamedTuple):
    """A model, its tasks, and what its reply showed, or the error; with what the question used."""

    tasks: str
    model: str
    finding: str
    error: str = ""
    tokens: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0


@click.command()
def doctor() -> None:
    """Ask each configured model one tiny question."""
    console, settings = Console(), Settings.load()
    console.say(f"Method: {settings.method_in_words}")
    with console.status("Asking the models"):
        checked = list(check_models(settings))
    if not checked:
        console.say("No model is set: the embedded default needs none.")
        return
    table = table_of("tasks", "model", "reply", numbers=("tokens", "seconds", "US$"))
    for one in checked:
        reply = "failed" if one.error else one.finding
        table.add_row(one.tasks, one.model, reply, f"{one.tokens:,}", f"{one.seconds:.1f}", f"{one.cost_usd:.6f}")
    print_table(console, table)
    failed = [one for one in checked if one.error]
    for one in failed:
        console.say(f"{one.tasks}: {one.error}")
    if failed:
        sys.exit(1)


def check_models(settings: Settings) -> Iterator[CheckedModel]:
    """Ask each configured model one tiny question: those of indexing, and the one that answers questions."""
    if settings.embeds_locally:
        yield _check_local_embeddings(settings)
    tasks: dict[Use, list[str]] = {"extraction": settings.model_tasks} if settings.model_tasks else {}
    if settings.model_of("query"):
        tasks["query"] = ["questions"]
    if not tasks and not settings.embeds_remotely:
        return
    from graphrag_assets.llm.backend import model_checks  # imports litellm
    from graphrag_assets.llm.event_loop import wait_for
    from graphrag_assets.llm.model_errors import ModelError

    for check in model_checks(settings, tasks):
        finding, error, began = "", "", time.monotonic()
        try:
            finding = wait_for(check.ask())
        except ModelError as problem:
            error = str(problem)
        used = check.usage.total
        tokens = used.prompt_tokens + used.completion_tokens
        seconds = time.monotonic() - began
        yield CheckedModel(", ".join(check.tasks), check.options.where, finding, error, tokens, seconds, used.cost_usd)


def _check_local_embeddings(settings: Settings) -> CheckedModel:
    from graphrag_assets.embedded import encoder_of

    began = time.monotonic()
    try:
        (vector,) = encoder_of(settings.embedding_model).embed_passages(["ready"])
    except GraphRAGError as problem:
        return CheckedModel("embeddings", settings.embedding_model, "", str(problem))
    finding, seconds = f"{len(vector)} dimensions", time.monotonic() - began
    return CheckedModel("embeddings", settings.embedding_model, finding, seconds=seconds)
