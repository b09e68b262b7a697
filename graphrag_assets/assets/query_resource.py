"""`GraphRagResource`: questions from the assets of any Dagster project."""

import dagster as dg
from pydantic import Field, PrivateAttr

from graphrag_assets.query import GraphRAG


class GraphRagResource(dg.ConfigurableResource):
    """The newest publication of an index, for assets that ask questions or read tables.

    >>> @dg.asset(deps=["publication"])
    ... def briefing(graphrag: GraphRagResource) -> dg.MaterializeResult:
    ...     answer = graphrag.rag.global_("What changed this week?")
    ...     return dg.MaterializeResult(metadata={"briefing": dg.MarkdownMetadataValue(answer.answer)})
    """

    index: str = Field(
        default="",
        description="Index folder, published .duckdb file, or URL of one; default: index/ in GRAPHRAG_DATA or data/.",
    )
    _rag: GraphRAG | None = PrivateAttr(default=None)

    @property
    def rag(self) -> GraphRAG:
        """The query object, opened at its first use in a run.

        Raises:
            StoreError: nothing is published yet.
        """
        if self._rag is None:
            self._rag = GraphRAG(self.index or None)
        return self._rag

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Close the index file at the end of the run."""
        if self._rag is not None:
            self._rag.close()
