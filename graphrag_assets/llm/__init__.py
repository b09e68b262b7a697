"""Clients of language and embedding models, with one ledger and one set of limits.

The entry points are `ChatModel` and `EmbeddingModel`. A call passes, in this order: the ledger (no answer is paid for
twice), single-flight, the limits and retries, the budget, the provider by litellm, validation, the ledger again.
litellm is imported with the first request that is sent.
"""

from graphrag_assets.llm.budget import Budget
from graphrag_assets.llm.chat_client import ChatModel
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_errors import (
    BudgetExceeded,
    CircuitOpen,
    EmptyAnswer,
    InvalidAnswer,
    LedgerError,
    ModelError,
    RefusedAnswer,
    RequestRejected,
    RetriesExhausted,
    TruncatedAnswer,
)
from graphrag_assets.llm.model_options import (
    ChatOptions,
    ChatRequest,
    Completion,
    EmbeddingOptions,
    LimitOptions,
    Message,
    PriceOptions,
)
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.rate_limits import Limits
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.usage import Usage, UsageMeter

__all__ = [
    "Budget",
    "BudgetExceeded",
    "ChatModel",
    "ChatOptions",
    "ChatRequest",
    "CircuitOpen",
    "Completion",
    "EmbeddingModel",
    "EmbeddingOptions",
    "EmptyAnswer",
    "InvalidAnswer",
    "Ledger",
    "LedgerError",
    "LimitOptions",
    "Limits",
    "Message",
    "ModelError",
    "PriceOptions",
    "Prices",
    "RefusedAnswer",
    "RequestRejected",
    "RetriesExhausted",
    "Salvaged",
    "TruncatedAnswer",
    "Usage",
    "UsageMeter",
]
