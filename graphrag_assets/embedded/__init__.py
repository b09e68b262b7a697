"""The embedded default: extracts, reports, answers and embeds with no key, no network and no downloaded model.

Other folders import from here only. A part is loaded when it is first used, because some compile many patterns.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrag_assets.embedded.answerer import EmbeddedAnswerer as EmbeddedAnswerer
    from graphrag_assets.embedded.centrality import summarize as summarize
    from graphrag_assets.embedded.conversation import in_conversation as in_conversation
    from graphrag_assets.embedded.conversation import rate as rate
    from graphrag_assets.embedded.extractor import extract_unit as extract_unit
    from graphrag_assets.embedded.hashed_embeddings import DIMENSIONS as DIMENSIONS
    from graphrag_assets.embedded.hashed_embeddings import embed as embed
    from graphrag_assets.embedded.indexing import embedded_models as embedded_models
    from graphrag_assets.embedded.prompt_tuner import EmbeddedTuner as EmbeddedTuner
    from graphrag_assets.embedded.questions import Asked as Asked
    from graphrag_assets.embedded.questions import language_of_question as language_of_question
    from graphrag_assets.embedded.questions import stems as stems
    from graphrag_assets.embedded.reporter import write_reports as write_reports
    from graphrag_assets.embedded.semantic import encoder_of as encoder_of
    from graphrag_assets.embedded.semantic import encoder_of_index as encoder_of_index
    from graphrag_assets.embedded.written_dates import periods as periods

EXTRACTOR = "embedded/nlp-3"
"""Extractor of facts by the embedded default; `EXTRACTOR+…` where claims are another's, or off, and `…+EXTRACTOR` where
only claims are the embedded default's."""
REPORTER = "embedded/extractive-2"
EMBEDDING_MODEL = "embedded/hashed-ngrams-512-v2"

_MODULES = {
    "EmbeddedAnswerer": "answerer",
    "EmbeddedTuner": "prompt_tuner",
    "summarize": "centrality",
    "in_conversation": "conversation",
    "rate": "conversation",
    "extract_unit": "extractor",
    "DIMENSIONS": "hashed_embeddings",
    "embed": "hashed_embeddings",
    "embedded_models": "indexing",
    "Asked": "questions",
    "language_of_question": "questions",
    "stems": "questions",
    "write_reports": "reporter",
    "encoder_of": "semantic",
    "encoder_of_index": "semantic",
    "periods": "written_dates",
}


def __getattr__(name: str) -> Any:
    """Load the module of a part (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
