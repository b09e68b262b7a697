"""Graphs in GraphML, as tables of entities and relationships."""

from collections.abc import Sequence
from pathlib import Path

import igraph
import polars as pl

from graphrag_assets.errors import InputError

_TITLES = ("title", "name", "label", "id")
_TYPES = ("type", "entity_type", "kind", "category")
_DESCRIPTIONS = ("description", "desc", "text", "label", "type")
_WEIGHTS = ("weight", "strength", "value")


def is_graph(path: Path) -> bool:
    """Whether `path` is a GraphML file."""
    return path.is_file() and path.suffix.lower() == ".graphml"


def read_graph(path: Path) -> dict[str, pl.DataFrame]:
    """The tables entities and relationships of a GraphML file.

    Attributes are read by their usual names: title, name, label or id of a node; description; weight.

    Raises:
        InputError: it is not GraphML.
    """
    try:
        graph = igraph.Graph.Read_GraphML(str(path))
    except (igraph.InternalError, OSError) as error:
        raise InputError(f"{path} cannot be read as GraphML: {error}") from error
    vertices = {name: graph.vs[name] for name in graph.vs.attributes()}
    edges = {name: graph.es[name] for name in graph.es.attributes()}
    titles = _texts(vertices, _TITLES, graph.vcount())
    ends = graph.get_edgelist()
    entities = pl.DataFrame(
        {
            "id": [str(number) for number in range(graph.vcount())],
            "human_readable_id": list(range(graph.vcount())),
            "title": titles,
            "type": _texts(vertices, _TYPES, graph.vcount()),
            "description": _texts(vertices, ("description", "desc", "text"), graph.vcount()),
        },
        schema_overrides=dict.fromkeys(("id", "title", "type", "description"), pl.String),
    )
    relationships = pl.DataFrame(
        {
            "id": [str(number) for number in range(graph.ecount())],
            "human_readable_id": list(range(graph.ecount())),
            "source": [titles[source] for source, _ in ends],
            "target": [titles[target] for _, target in ends],
            "description": _texts(edges, _DESCRIPTIONS, graph.ecount()),
            "weight": next((edges[name] for name in _WEIGHTS if name in edges), [1.0] * graph.ecount()),
        },
        schema_overrides=dict.fromkeys(("id", "source", "target", "description"), pl.String),
        strict=False,
    )
    return {"entities": entities, "relationships": relationships}


def _texts(attributes: dict[str, list[object]], names: Sequence[str], n: int) -> list[str | None]:
    """For each row the first non-empty attribute of these names, as text."""
    found = [attributes[name] for name in names if name in attributes]
    return [next((str(values[row]) for values in found if _has_value(values[row])), None) for row in range(n)]


def _has_value(value: object) -> bool:
    """igraph gives missing attributes as empty texts or NaN."""
    return value is not None and value == value and bool(str(value).strip())
