"""What the retrievers have in common: the index that they read, and the metadata of a passage."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphrag_assets.query import GraphRAG

Index = GraphRAG | str | Path | None
"""What a retriever reads: a `GraphRAG`, or the path that one would be given."""
TITLE, SOURCE, PLACE = "title", "source", "place"


def opened(index: Index) -> GraphRAG:
    """The `GraphRAG` itself, or one of the index at this path."""
    return index if isinstance(index, GraphRAG) else GraphRAG(index)


def metadata_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a row of `GraphRAG.retrieve`; plain values, without those that are missing."""
    known = {
        TITLE: row["document"],
        SOURCE: row["source"],
        PLACE: row["place"],
        "context": row["context"],
        "start_char": row["start_char"],
        "end_char": row["end_char"],
        "score": row["score"],
        "text_unit_id": row["id"],
        "document_id": row["document_id"],
        "entities": row["entities"],
    }
    return {name: value for name, value in known.items() if value is not None}
