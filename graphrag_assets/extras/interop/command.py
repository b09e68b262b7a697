"""`import` and `publications export`: exchange indexes with Microsoft GraphRAG and graph tools."""

from pathlib import Path

import click

from graphrag_assets.assets.index import Index
from graphrag_assets.cli.terminal import INDEX, Console, print_table, table_of
from graphrag_assets.extras.interop import exporter
from graphrag_assets.extras.interop.importer import import_index, remove
from graphrag_assets.extras.interop.neo4j_export import PASSWORD, export_neo4j

_NEO4J = "neo4j"
_THEN = "Run `graphrag-assets index` to update the graph and publish."


@click.command("import")
@click.argument("source", type=click.Path(exists=True, path_type=Path), required=False)
@click.option("--name", help="Name of the batch. Default: imported- and the name of the folder.")
@click.option("--remove", "removed", metavar="BATCH", help="Remove an imported batch.")
@click.option("--document", "documents", multiple=True, help="With --remove: only this document (title, source or id).")
def import_(source: Path | None, name: str | None, removed: str | None, documents: tuple[str, ...]) -> None:
    """Import the index of Microsoft GraphRAG 3 in SOURCE, its output folder."""
    if (source is None) == (removed is None):
        raise click.UsageError("Give either SOURCE or --remove.")
    console, index = Console(), Index.from_environment()
    if removed is not None:
        titles = remove(index, removed, documents)
        more = ", …" if len(titles) > 5 else ""
        console.say(f"Removed from {removed}: {len(titles)} documents ({', '.join(titles[:5])}{more}). {_THEN}")
        return
    assert source
    imported = import_index(index, source, name)
    table = table_of("table", numbers=("rows in", "rows out"), title=imported.batch)
    for of_table, n in imported.rows_in.items():
        table.add_row(of_table, f"{n:,}", f"{imported.rows_out[of_table]:,}")
    print_table(console, table)
    if imported.repaired:
        table = table_of("table", "repaired or left out", numbers=["rows"])
        for (of_table, what), n in sorted(imported.repaired.items()):
            table.add_row(of_table, what, f"{n:,}")
        print_table(console, table)
    console.say(_THEN)


@click.command()
@click.argument("kind", metavar="FORMAT", type=click.Choice((*exporter.FORMATS, _NEO4J)))
@click.argument("target", type=click.Path(path_type=Path), required=False)
@INDEX
@click.option("--uri", help="Of neo4j: the server, such as neo4j://localhost:7687.")
@click.option("--user", default="neo4j", show_default=True, help=f"Of neo4j; the password is in {PASSWORD}.")
@click.option("--database", help="Of neo4j. Default: the user's.")
def export(kind: str, target: Path | None, path: Path | None, uri: str | None, user: str, database: str | None) -> None:
    """Export the publication to TARGET, or into a Neo4j server.

    graphrag writes a folder with GraphRAG 3's tables, graphml a file. neo4j makes the database of the server --uri
    equal to the publication.
    """
    if kind == _NEO4J:
        if uri is None or target is not None:
            raise click.UsageError("neo4j takes --uri, and no TARGET.")
        rows = export_neo4j(uri, user, database, path)
    elif target is None:
        raise click.UsageError(f"{kind} needs a TARGET.")
    else:
        rows = exporter.export(kind, target, path)
    counted = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    Console().say(f"{target or uri}: {counted}")
