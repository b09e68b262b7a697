"""GraphML from the template in `graphs/`, written row by row, so that a graph of any size fits.

Specification: http://graphml.graphdrawing.org/specification.html. Gephi, igraph, networkx and Cytoscape read it.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

_NODE_ATTRIBUTES = {
    "title": "string",
    "type": "string",
    "description": "string",
    "frequency": "long",
    "degree": "long",
}
_EDGE_ATTRIBUTES = {"type": "string", "description": "string", "combined_degree": "long", "weight": "double"}
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
_BREAKS = str.maketrans({"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})


def write_graph(
    path: Path, nodes: Iterable[Mapping[str, Any]], edges: Iterable[Mapping[str, Any]], levels: int
) -> None:
    """Write the graph; attributes without a value are left out.

    Args:
        nodes: number, title, type, description, frequency, degree, and community_level_0 to
            the last of `levels`.
        edges: number, source and target (numbers of nodes), type, description, weight, combined_degree.
    """
    template = _ENVIRONMENT.get_template("graphml.xml")
    communities = {f"community_level_{level}": "long" for level in range(levels)}
    rows = template.stream(
        nodes=nodes, edges=edges, node_attributes=_NODE_ATTRIBUTES | communities, edge_attributes=_EDGE_ATTRIBUTES
    )
    rows.enable_buffering(1000)
    rows.dump(str(path), encoding="utf-8")


def _legal(value: object) -> Markup:
    """The value as XML, without illegal characters; readers turn plain line breaks in attributes into blanks."""
    if isinstance(value, Markup):  # of a macro
        return value
    return Markup(str(escape(_ILLEGAL.sub("", str(value)))).translate(_BREAKS))


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("graphrag_assets.extras.interop", "graphs"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_legal,
)
