"""GraphRAG as a Dagster project: documents in, a knowledge graph in DuckDB out, answers over it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag_assets.defs.component import GraphRagComponent
    from graphrag_assets.defs.query_resource import GraphRagResource

__all__ = ["GraphRagComponent", "GraphRagResource", "__version__"]
__version__ = "0.1.0"


_MODULES = {"GraphRagComponent": "component", "GraphRagResource": "query_resource"}


def __getattr__(name: str) -> object:
    """What needs Dagster is imported when it is used: Dagster takes seconds, and queries do without it."""
    if name in _MODULES:
        return getattr(import_module(f"graphrag_assets.defs.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
