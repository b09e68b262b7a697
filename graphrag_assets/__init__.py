"""GraphRAG as a Dagster project: documents in, a knowledge graph in DuckDB out, answers over it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag_assets.defs.component import GraphRagComponent

__all__ = ["GraphRagComponent", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """`GraphRagComponent`, imported when it is used: Dagster takes seconds, and queries do without it."""
    if name == "GraphRagComponent":
        from graphrag_assets.defs.component import GraphRagComponent

        return GraphRagComponent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
