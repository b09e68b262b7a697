"""Exports a publication: GraphRAG 3's tables as parquet files, or the graph as GraphML."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape

import duckdb

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
    ((levels,),) = connection.execute("SELECT coalesce(max(level) + 1, 0) FROM communities").fetchall()
    communities = "".join(_COMMUNITY.format(level=level) for level in range(levels))
    write_graphml(target, connection, _NODES.format(communities=communities), _EDGES)
    counts = "SELECT (SELECT count(*) FROM entities), (SELECT count(*) FROM relationships)"
    return dict(zip(("entities", "relationships"), connection.execute(counts).fetchall()[0], strict=True))


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


_TYPES = {"BIGINT": "long", "DOUBLE": "double", "VARCHAR": "string"}
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
_AT_ONCE = 10_000


def write_graphml(path: Path, connection: duckdb.DuckDBPyConnection, nodes: str, edges: str) -> None:
    """Write an undirected graph; null attributes are left out.

    Args:
        path: the file.
        connection: what queries are run on.
        nodes: query for number, and attributes.
        edges: query for number, the numbers of both ends, and attributes.
    """
    columns = {query: connection.sql(query).columns for query in (nodes, edges)}
    with path.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for scope, query, first in (("node", nodes, 1), ("edge", edges, 3)):
            for name, kind in zip(columns[query][first:], connection.sql(query).types[first:], strict=True):
                file.write(
                    f'<key id="{scope}_{name}" for="{scope}" attr.name="{name}" attr.type="{_TYPES[str(kind)]}"/>\n'
                )
        file.write('<graph id="entities" edgedefault="undirected">\n')
        for number, *values in _rows(connection, nodes):
            file.write(f'<node id="n{number}">{_data("node", columns[nodes][1:], values)}</node>\n')
        for number, source, target, *values in _rows(connection, edges):
            ends = f'source="n{source}" target="n{target}"'
            file.write(f'<edge id="e{number}" {ends}>{_data("edge", columns[edges][3:], values)}</edge>\n')
        file.write("</graph>\n</graphml>\n")


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[object, ...]]:
    result = connection.execute(query)
    while rows := result.fetchmany(_AT_ONCE):
        yield from rows


def _data(scope: str, names: list[str], values: list[object]) -> str:
    return "".join(
        f'<data key="{scope}_{name}">{escape(_ILLEGAL.sub("", str(value)), {chr(13): "&#13;"})}</data>'
        for name, value in zip(names, values, strict=True)
        if value is not None
    )
