"""Several items in one request."""

from graphrag_assets.llm.task import by_place

__all__ = ["by_place"]
