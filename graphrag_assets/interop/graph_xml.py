"""GraphML and GEXF, written row by row, so that a graph of any size fits.

GraphML: http://graphml.graphdrawing.org/specification.html. GEXF 1.3: https://gexf.net/schema.html. Gephi, igraph,
networkx and Cytoscape read them.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import XMLGenerator


class Node(NamedTuple):
    """An entity. `x`, `y`: its place on the map, -1 to 1. `communities`: its community at each level, from level 0."""

    number: int
    title: str
    type: str
    description: str
    frequency: int
    degree: int
    x: float | None
    y: float | None
    communities: list[int | None]


class Edge(NamedTuple):
    """A relationship of two entities, by their numbers."""

    number: int
    source: int
    target: int
    type: str
    description: str
    weight: float
    combined_degree: int


_NODE_ATTRIBUTES = {
    "title": "string",
    "type": "string",
    "description": "string",
    "frequency": "long",
    "degree": "long",
    "x": "double",
    "y": "double",
}
_EDGE_ATTRIBUTES = {"type": "string", "description": "string", "combined_degree": "long"}
_MAP_SCALE = 1000.0
"""Gephi's canvas is about that large."""
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold."""


class _Writer(XMLGenerator):
    """Elements with their attributes and texts; characters that XML cannot hold are left out."""

    @contextlib.contextmanager
    def element(self, name: str, /, **attributes: object) -> Iterator[None]:
        self.startElement(name, {key.rstrip("_"): _legal(value) for key, value in attributes.items()})  # type: ignore[arg-type]
        yield
        self.endElement(name)

    def leaf(self, name: str, /, text: object = "", **attributes: object) -> None:
        with self.element(name, **attributes):
            self.characters(_legal(text))


def _legal(value: object) -> str:
    return _ILLEGAL.sub("", str(value))


@contextlib.contextmanager
def _document(path: Path) -> Iterator[_Writer]:
    with path.open("w", encoding="utf-8") as file:
        writer = _Writer(file, encoding="utf-8", short_empty_elements=True)
        writer.startDocument()
        yield writer
        writer.endDocument()


def _communities(levels: int) -> dict[str, str]:
    return {f"community_level_{level}": "long" for level in range(levels)}


def _values(row: Node | Edge) -> dict[str, object]:
    """The attributes of a node or an edge by name; those without a value are left out."""
    values: dict[str, object] = dict(row._asdict())
    communities: list[int | None] = values.pop("communities", [])  # type: ignore[assignment]
    for level, community in enumerate(communities):
        values[f"community_level_{level}"] = community
    return {name: value for name, value in values.items() if value is not None}


def write_graphml(path: Path, nodes: Iterable[Node], edges: Iterable[Edge], levels: int) -> None:
    """The graph as GraphML; attributes of nodes and edges as `Node` and `Edge` have them."""
    of_nodes, of_edges = _NODE_ATTRIBUTES | _communities(levels), _EDGE_ATTRIBUTES | {"weight": "double"}
    with _document(path) as xml, xml.element("graphml", xmlns="http://graphml.graphdrawing.org/xmlns"):
        for scope, attributes in (("node", of_nodes), ("edge", of_edges)):
            for name, kind in attributes.items():
                xml.leaf("key", id=f"{scope}_{name}", for_=scope, **{"attr.name": name, "attr.type": kind})
        with xml.element("graph", id="entities", edgedefault="undirected"):
            for node in nodes:
                with xml.element("node", id=f"n{node.number}"):
                    _graphml_data(xml, "node", of_nodes, _values(node))
            for edge in edges:
                with xml.element("edge", id=f"e{edge.number}", source=f"n{edge.source}", target=f"n{edge.target}"):
                    _graphml_data(xml, "edge", of_edges, _values(edge))


def _graphml_data(xml: _Writer, scope: str, attributes: Mapping[str, str], values: Mapping[str, object]) -> None:
    for name in attributes:
        if name in values:
            xml.leaf("data", values[name], key=f"{scope}_{name}")


def write_gexf(path: Path, nodes: Iterable[Node], edges: Iterable[Edge], levels: int) -> None:
    """The graph as GEXF 1.3, with the entities where the map has them."""
    of_nodes = {name: kind for name, kind in _NODE_ATTRIBUTES.items() if name not in ("title", "x", "y")}
    of_nodes |= _communities(levels)
    namespaces = {"xmlns": "http://gexf.net/1.3", "xmlns:viz": "http://gexf.net/1.3/viz", "version": "1.3"}
    with _document(path) as xml, xml.element("gexf", **namespaces), xml.element("graph", defaultedgetype="undirected"):
        for scope, attributes in (("node", of_nodes), ("edge", _EDGE_ATTRIBUTES)):
            with xml.element("attributes", class_=scope):
                for name, kind in attributes.items():
                    xml.leaf("attribute", id=name, title=name, type=kind)
        with xml.element("nodes"):
            for node in nodes:
                with xml.element("node", id=node.number, label=node.title):
                    _gexf_data(xml, of_nodes, _values(node))
                    if node.x is not None and node.y is not None:
                        xml.leaf("viz:position", x=node.x * _MAP_SCALE, y=node.y * _MAP_SCALE, z=0.0)
        with xml.element("edges"):
            for edge in edges:
                own = {"id": edge.number, "source": edge.source, "target": edge.target, "weight": edge.weight}
                with xml.element("edge", **own):
                    _gexf_data(xml, _EDGE_ATTRIBUTES, _values(edge))


def _gexf_data(xml: _Writer, attributes: Mapping[str, str], values: Mapping[str, object]) -> None:
    with xml.element("attvalues"):
        for name in attributes:
            if name in values:
                xml.leaf("attvalue", for_=name, value=values[name])
