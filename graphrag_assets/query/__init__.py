"""Answers questions from a publication: local, global, DRIFT and basic search, directly on the DuckDB tables.

from graphrag_assets.query import GraphRAG

rag = GraphRAG()
print(rag.local("Who commanded the Niagara?"))
"""

from graphrag_assets.contracts.answering import Answerer, Evidence, Passage, Reply
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.errors import (
    GraphRAGError,
    IndexMissing,
    InvalidOption,
    ModelUnavailable,
    QueryError,
    QueryTimeout,
    StoreError,
)
from graphrag_assets.query.citations import Citation, CitedRow
from graphrag_assets.query.context import Context, Section
from graphrag_assets.query.drift import DriftOptions
from graphrag_assets.query.graphrag import GraphRAG
from graphrag_assets.query.history import ConversationHistory, Turn
from graphrag_assets.query.local import LocalOptions
from graphrag_assets.query.methods import METHODS, AnswerMethodName, MethodName
from graphrag_assets.query.options import Callbacks, Failure, Filter
from graphrag_assets.query.question_task import AnswerStream
from graphrag_assets.query.results import Action, Answer, MethodChoice, answer_to_json, answer_to_markdown

__all__ = [
    "METHODS",
    "Action",
    "Answer",
    "AnswerMethodName",
    "AnswerStream",
    "Answerer",
    "Callbacks",
    "Citation",
    "CitedRow",
    "Context",
    "ConversationHistory",
    "DriftOptions",
    "Evidence",
    "Failure",
    "Filter",
    "GraphRAG",
    "GraphRAGError",
    "IndexMissing",
    "InvalidOption",
    "LocalOptions",
    "MethodChoice",
    "MethodName",
    "ModelUnavailable",
    "Passage",
    "QueryError",
    "QueryTimeout",
    "Reply",
    "Section",
    "StoreError",
    "Turn",
    "Usage",
    "answer_to_json",
    "answer_to_markdown",
]  # fmt: skip
