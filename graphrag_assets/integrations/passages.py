"""What the retrievers have in common: the index that they read, and the metadata of a passage."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_assets.query import GraphRAG

Index = GraphRAG | str | Path | None
"""What a retriever reads: a `GraphRAG`, or the path that one would be given."""
_Retriever = TypeVar("_Retriever", bound="OpensAnIndex")
TITLE, SOURCE, PLACE = "title", "source", "place"


class OpensAnIndex:
    """A retriever that opens its `index`, unless that is a `GraphRAG` already, and closes what it opened."""

    if TYPE_CHECKING:  # to pydantic, these would be fields
        index: Index
        _rag: GraphRAG

    def _open(self) -> None:
        self._rag = self.index if isinstance(self.index, GraphRAG) else GraphRAG(self.index)

    def close(self) -> None:
        """Close the index if the retriever opened it; later questions raise QueryError."""
        if not isinstance(self.index, GraphRAG):
            self._rag.close()

    def __enter__(self: _Retriever) -> _Retriever:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def metadata_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a row of `GraphRAG.retrieve`; plain values, without those that are missing."""
    metadata = {
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
    return {name: value for name, value in metadata.items() if value is not None}
