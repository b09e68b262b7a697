"""A retriever for LlamaIndex.

from graphrag_assets import GraphRAG
from graphrag_assets.integrations.llama_index import GraphRAGRetriever

retriever = GraphRAGRetriever(GraphRAG("data/index"), k=5)
nodes = retriever.retrieve("Who commanded the Niagara?")
"""

from typing import Any

import polars as pl

from graphrag_assets.integrations import metadata_of
from graphrag_assets.query import Filter, GraphRAG
from graphrag_assets.query.passages import RankingMethod

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
except ModuleNotFoundError as error:
    raise ImportError(
        "GraphRAGRetriever for LlamaIndex needs llama-index-core: pip install -e '.[llama-index]'."
    ) from error

_READ_BY_MODELS = ("title", "source", "place")
"""LlamaIndex puts the metadata of a node into prompts, but for the keys that the node excludes."""


class GraphRAGRetriever(BaseRetriever):
    """The passages of an index that match a question best, as LlamaIndex's nodes, best first.

    The metadata of a node: title, source, place, context (title › headings), start_char and end_char in the document,
    score, text_unit_id, document_id, entities. Prompts and embeddings get title, source and place.

    Args:
        index: the index.
        k: number of passages; fewer if fewer match.
        method: graph, text, words or vectors, as in `GraphRAG.retrieve`.
        filter: limits the passages to a part of the index.
        more: options of LlamaIndex's `BaseRetriever`, such as `callback_manager`.
    """

    def __init__(
        self,
        index: GraphRAG,
        *,
        k: int = 10,
        method: RankingMethod = "graph",
        filter: Filter | None = None,
        **more: Any,
    ) -> None:
        self.index = index
        self._options: dict[str, Any] = {"k": k, "method": method, "filter": filter}
        super().__init__(**more)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self.index.retrieve(query_bundle.query_str, **self._options))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self.index.aretrieve(query_bundle.query_str, **self._options))


def _nodes(passages: pl.DataFrame) -> list[NodeWithScore]:
    return [_node(row) for row in passages.iter_rows(named=True)]


def _node(row: dict[str, Any]) -> NodeWithScore:
    metadata = metadata_of(row)
    hidden = [name for name in metadata if name not in _READ_BY_MODELS]
    node = TextNode(
        id_=row["id"],
        text=row["text"],
        start_char_idx=row["start_char"],
        end_char_idx=row["end_char"],
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=row["document_id"])},
    )
    return NodeWithScore(node=node, score=row["score"])
