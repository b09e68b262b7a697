"""`import` and `publications export`: exchange indexes with Microsoft GraphRAG and graph tools."""

from collections.abc import Sequence
from pathlib import Path

import click
import polars as pl
from rich.table import Table

from graphrag_assets.cli.shared_options import INDEX
from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.extras.interop import exporter
from graphrag_assets.extras.interop.imported_batches import hand_over, remove
from graphrag_assets.extras.interop.importer import import_index
from graphrag_assets.extras.interop.neo4j_export import PASSWORD, export_neo4j
from graphrag_assets.extras.interop.source import TABLES
from graphrag_assets.indexing.index import Index
from graphrag_assets.settings import Settings
from graphrag_assets.store.imports import counts_of, imports, unfinished
from graphrag_assets.store.publication_files import STABLE_NAME

_NEO4J = "neo4j"
_THEN = "Run `graphrag-assets index` to update the dependent rows and publish."


@click.command("import")
@click.argument("source", type=click.Path(exists=True, path_type=Path), required=False)
@click.option("--name", help="Name of the batch. Default: imported- and the name of the folder.")
@click.option(
    "--vectors-of",
    default="",
    help="Embedding model of the imported vectors; they are used only if it equals the configured model.",
)
@click.option("--remove", "removed", metavar="BATCH", help="Remove an imported batch.")
@click.option(
    "--hand-over", "handed_over", metavar="BATCH", help="Move an imported batch's documents into the input folder."
)
@click.option(
    "--document",
    "documents",
    multiple=True,
    help="With --remove or --hand-over: only this document (title, source or id).",
)
def import_(
    source: Path | None,
    name: str | None,
    vectors_of: str,
    removed: str | None,
    handed_over: str | None,
    documents: tuple[str, ...],
) -> None:
    """Import an index of Microsoft GraphRAG, or a graph, from SOURCE; without SOURCE, show what is imported."""
    if sum(given is not None for given in (source, removed, handed_over)) > 1:
        raise click.UsageError("Give one of SOURCE, --remove and --hand-over.")
    console, index = Console(), Index.from_environment()
    if source is not None:
        _import(console, index, source, name, vectors_of)
    elif removed is not None:
        console.say(f"Removed from {removed}: {_listed(remove(index, removed, documents))}. {_THEN}")
    elif handed_over is not None:
        console.say(f"Written to the input folder: {_listed(hand_over(index, handed_over, documents))}. {_THEN}")
    else:
        _print_imports(console, index)


@click.command()
@click.argument("kind", metavar="FORMAT", type=click.Choice((*exporter.FORMATS, _NEO4J)))
@click.argument("target", type=click.Path(path_type=Path), required=False)
@INDEX
@click.option("--batch", "batches", multiple=True, help="Only this batch; may be given several times.")
@click.option(
    "--community", "communities", type=int, multiple=True, help="Only this community and its sub-communities."
)
@click.option("--uri", help="Of neo4j: the server, such as neo4j://localhost:7687.")
@click.option("--user", default="neo4j", show_default=True, help=f"Of neo4j; the password is in {PASSWORD}.")
@click.option("--database", help="Of neo4j. Default: the user's.")
def export(
    kind: str,
    target: Path | None,
    path: Path | None,
    batches: tuple[str, ...],
    communities: tuple[int, ...],
    uri: str | None,
    user: str,
    database: str | None,
) -> None:
    """Export the publication to TARGET, or into a Neo4j server.

    graphrag, csv, ducklake and cypher (files for neo4j-admin) write a folder; graphml and reports a file. neo4j
    sends what has changed since the last export to the server --uri.
    """
    if kind == _NEO4J:
        if uri is None or target is not None:
            raise click.UsageError("neo4j takes --uri, and no TARGET.")
        rows = export_neo4j(uri, user, database, path, batches, communities)
    elif target is None:
        raise click.UsageError(f"{kind} needs a TARGET.")
    else:
        rows = exporter.export(kind, target, path, batches, communities)
    counted = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    Console().say(f"{target or uri}: {counted or 'nothing has changed'}")


def _import(console: Console, index: Index, path: Path, name: str | None, vectors_of: str) -> None:
    with console.status(f"Importing {path}"):
        imported = import_index(index, path, name, vectors_of)
    print_table(console, _counts_table(imported.batch, imported.generation, imported.counts))
    _print_repairs(console, imported.counts)
    if note := _note(index.settings, imported.counts):
        console.say(note)
    folder = index.settings.index_folder / STABLE_NAME
    console.say(f"Published: publication {imported.publication.number}, {folder}")


def _print_imports(console: Console, index: Index) -> None:
    working = index.working
    found = imports(working) if working.path.exists() else pl.DataFrame()
    if found.is_empty():
        console.say("Nothing is imported. Give the folder of an index to import it.")
    broken_off = set(unfinished(working)["batch"]) if found.height else set()
    for batch, origin, generation, when in found.iter_rows():
        if batch in broken_off:
            console.say(f"{batch}: unfinished: run the same import again (from {origin})")
            continue
        counts = counts_of(working, batch)
        print_table(console, _counts_table(batch, generation, counts))
        _print_repairs(console, counts)
        console.say(f"From {origin}, {when:%Y-%m-%d %H:%M} UTC")


def _counts_table(batch: str, generation: str, counts: pl.DataFrame) -> Table:
    table = table_of("table", numbers=("rows in", "rows out"), title=f"{batch}: {generation}")
    read, written = (
        dict(counts.filter(step=step).select("table_name", "n").iter_rows()) for step in ("read", "written")
    )
    for name in TABLES:
        table.add_row(name, f"{read.get(name, 0):,}", f"{written.get(name, 0):,}")
    return table


def _print_repairs(console: Console, counts: pl.DataFrame) -> None:
    repaired = counts.filter(pl.col("step") == "repaired").select("table_name", "what", "n").sort("table_name", "what")
    if repaired.is_empty():
        console.say("Nothing had to be repaired.")
        return
    table = table_of("table", "repaired or left out", numbers=["rows"])
    for name, what, n in repaired.iter_rows():
        table.add_row(name, what, f"{n:,}")
    print_table(console, table)


def _note(settings: Settings, counts: pl.DataFrame) -> str | None:
    """The model calls of the next run, if a model is set."""
    written = counts.filter(pl.col("what").str.starts_with("written by the embedded default"))["n"].sum()
    if settings.choices.reports != "model" or not written:
        return None
    return (
        f"{written} community reports were written by the embedded default: the next `index` has "
        f"{settings.model_of('extraction')} rewrite them. Imported reports are kept. `graphrag-assets index plan` "
        "shows the cost."
    )


def _listed(names: Sequence[str], shown: int = 5) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"{len(names)} documents ({', '.join(names[:shown])}{more})"
