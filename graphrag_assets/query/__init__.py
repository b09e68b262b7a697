"""Questions to a published index: local, global, DRIFT and basic search, straight on the DuckDB tables.

from graphrag_assets.query import GraphRAG

rag = GraphRAG()
print(rag.local("Who commanded the Niagara?"))
"""

from graphrag_assets.query.citations import Citation, CitedRow
from graphrag_assets.query.context import Context, Section
from graphrag_assets.query.graphrag import METHODS, GraphRAG
from graphrag_assets.query.results import Action, Answer, answer_to_markdown

__all__ = [
    "METHODS",
    "Action",
    "Answer",
    "Citation",
    "CitedRow",
    "Context",
    "GraphRAG",
    "Section",
    "answer_to_markdown",
]
