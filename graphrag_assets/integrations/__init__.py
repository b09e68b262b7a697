"""Retrievers for other frameworks: `langchain` and `llama_index`. Each needs the extra of its name."""

from collections.abc import Mapping
from typing import Any

_COLUMNS = ("source", "place", "context", "start_char", "end_char", "score", "document_id", "entities")


def metadata_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a row of `GraphRAG.retrieve`; plain values, without those that are missing."""
    metadata = {"title": row["document"], "text_unit_id": row["id"]} | {name: row[name] for name in _COLUMNS}
    return {name: value for name, value in metadata.items() if value is not None}
