"""GraphRAG as a Dagster project: documents in, a knowledge graph in DuckDB out, answers over it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag_assets.assets.component import GraphRagComponent, GraphRagResource
    from graphrag_assets.errors import (
        GraphRAGError,
        IndexMissing,
        InvalidOption,
        ModelUnavailable,
        QueryError,
        QueryTimeout,
        StoreError,
    )
    from graphrag_assets.query import GraphRAG

__all__ = [
    "GraphRAG", "GraphRAGError", "GraphRagComponent", "GraphRagResource", "IndexMissing", "InvalidOption",
    "ModelUnavailable", "QueryError", "QueryTimeout", "StoreError", "__version__",
]  # fmt: skip
__version__ = "0.1.0"


_MODULES = {
    "GraphRAG": "query",
    "GraphRagComponent": "assets.component",
    "GraphRagResource": "assets.component",
}
"""The module of each name; the errors are in `errors`."""


def __getattr__(name: str) -> object:
    """Everything is imported when it is used: Dagster takes seconds, and queries do without it."""
    if name in __all__:
        return getattr(import_module(f"graphrag_assets.{_MODULES.get(name, 'errors')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
