"""`status`: what is indexed, what was skipped, what is published."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.contracts.records import OF_READ_TEXT, problems_in_words
from graphrag_assets.settings import Settings
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
    made = dict(working.read("SELECT number, published_at FROM publication").iter_rows())
    when = f", made {made[number]:%Y-%m-%d %H:%M} UTC" if number in made else ""
    back = f"; readers were rolled back from {max(made)}" if number and made and number < max(made) else ""
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
