"""GraphML, written row by row, so that a graph of any size fits. Gephi, igraph, networkx and Cytoscape read it.

Specification: http://graphml.graphdrawing.org/specification.html.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import duckdb

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
