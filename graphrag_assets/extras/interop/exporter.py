"""Exports a publication: GraphRAG 3's tables as parquet files, or the graph as GraphML."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import igraph
import polars as pl

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.source import TABLES
from graphrag_assets.store.connections import attached
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.schema import literal

FORMATS = ("graphrag", "graphml")


def export(kind: str, target: Path, index: Path | None = None) -> dict[str, int]:
    """Write the index to `target` in a format of `FORMATS`: a folder of parquet files for GraphRAG, or a GraphML file.

    Args:
        kind: the format.
        target: file or folder. It appears in one step, complete; an existing file is replaced.
        index: an index folder or published file; default: that of the settings.

    Returns:
        rows by table.

    Raises:
        InputError: the target is a folder with files.
        StoreError: nothing is published, or by another version.
    """
    with published(index) as connection, _draft_beside(target.absolute()) as draft:
        return _graphrag(connection, draft) if kind == "graphrag" else _graphml(connection, draft)


@contextlib.contextmanager
def _draft_beside(target: Path) -> Iterator[Path]:
    """Yield a draft of a file or folder, which becomes `target` at the end: a killed export leaves no mixture of two.

    Raises:
        InputError: `target` is a folder with files.
    """
    if target.is_dir() and any(target.iterdir()):
        raise InputError(
            f"{target} is a folder with files. Give a new or an empty folder, or the name of a file: an export does "
            "not mix with other files."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        draft = Path(folder) / target.name
        yield draft
        if target.is_dir():
            target.rmdir()
        draft.replace(target)


@contextlib.contextmanager
def published(index: Path | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection that uses a publication."""
    path = CurrentPublication(index).reader().path
    with attached(published=path) as connection:
        connection.execute("USE published")
        yield connection


def _graphrag(connection: duckdb.DuckDBPyConnection, target: Path) -> dict[str, int]:
    target.mkdir()
    rows = {}
    for name in TABLES:
        copy = f"COPY (FROM graphrag_v3.{name}) TO {literal(target / f'{name}.parquet')} (FORMAT parquet)"
        ((rows[name],),) = connection.execute(copy).fetchall()
    return rows


def _graphml(connection: duckdb.DuckDBPyConnection, target: Path) -> dict[str, int]:
    """Write an undirected graph with the columns of entities and relationships as attributes."""
    ((levels,),) = connection.execute("SELECT coalesce(max(level) + 1, 0) FROM communities").fetchall()
    communities = "".join(_COMMUNITY.format(level=level) for level in range(levels))
    nodes = pl.DataFrame(connection.sql(_NODES.format(communities=communities)))
    edges = pl.DataFrame(connection.sql(_EDGES))
    place = {number: place for place, number in enumerate(nodes["number"])}
    graph = igraph.Graph(nodes.height, [(place[s], place[t]) for s, t in edges.select("source", "target").iter_rows()])
    for rows, attributes in ((nodes, graph.vs), (edges.drop("source", "target"), graph.es)):
        for name in rows.columns:
            values = rows[name]
            if values.dtype == pl.String:
                values = values.str.replace_all(_ILLEGAL, "").fill_null("")  # igraph writes None as a text
            attributes[name] = values.to_list()
    graph.write_graphml(str(target))
    return {"entities": nodes.height, "relationships": edges.height}


_COMMUNITY = ", any_value(m.community) FILTER (m.level = {level}) AS community_level_{level}"
_NODES = """
SELECT e.human_readable_id AS number, e.title, e.type, e.description, e.frequency, e.degree{communities}
FROM entities e LEFT JOIN community_members m ON m.entity_id = e.id GROUP BY ALL ORDER BY 1
"""
_EDGES = """
SELECT human_readable_id AS number, source_number AS source, target_number AS target, type, description, weight,
       combined_degree
FROM relationships ORDER BY 1
"""
_ILLEGAL = r"[^\t\n\r\x20-\x{d7ff}\x{e000}-\x{fffd}\x{10000}-\x{10ffff}]"
"""Characters that XML 1.0 does not allow."""
