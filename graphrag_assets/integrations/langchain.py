"""A retriever for LangChain.

from graphrag_assets import GraphRAG
from graphrag_assets.integrations.langchain import GraphRAGRetriever

retriever = GraphRAGRetriever(index=GraphRAG("data/index"), k=5)
documents = retriever.invoke("Who commanded the Niagara?")
"""

from typing import Any

import polars as pl

from graphrag_assets.integrations import metadata_of
from graphrag_assets.query import Filter, GraphRAG
from graphrag_assets.query.passages import RankingMethod

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ModuleNotFoundError as error:
    raise ImportError("GraphRAGRetriever for LangChain needs langchain-core: pip install -e '.[langchain]'.") from error


class GraphRAGRetriever(BaseRetriever):
    """The passages of an index that match a question best, as LangChain's documents, best first.

    Attributes:
        index: the index.
        k: number of passages; fewer if fewer match.
        method: graph, text, words or vectors, as in `GraphRAG.retrieve`.
        filter: limits the passages to a part of the index.

    `invoke(question, k=3, batches=["reports"])` takes all options of `GraphRAG.retrieve` for this one question.

    The metadata of a document: title, source, place, context (title › headings), start_char and end_char in the
    document, score, text_unit_id, document_id, entities.
    """

    index: GraphRAG
    k: int = 10
    method: RankingMethod = "graph"
    filter: Filter | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return _documents(self.index.retrieve(query, **self._options(options)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return _documents(await self.index.aretrieve(query, **self._options(options)))

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"k": self.k, "method": self.method, "filter": self.filter, **options}


def _documents(passages: pl.DataFrame) -> list[Document]:
    return [
        Document(id=row["id"], page_content=row["text"], metadata=metadata_of(row))
        for row in passages.iter_rows(named=True)
    ]
