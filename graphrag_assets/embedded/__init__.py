"""The embedded default: extracts, reports and answers with no key, no network and no downloaded model.

Other folders import from here only.
"""

from graphrag_assets.embedded.answerer import EmbeddedAnswerer
from graphrag_assets.embedded.centrality import summarize
from graphrag_assets.embedded.dates import Period, periods
from graphrag_assets.embedded.extractor import EXTRACTOR, extract_unit
from graphrag_assets.embedded.indexing import embedded_models
from graphrag_assets.embedded.questions import QuestionAnalysis, in_conversation, rate
from graphrag_assets.embedded.reporter import REPORTER, write_reports
from graphrag_assets.embedded.semantic import encoder_of, encoder_of_index
from graphrag_assets.embedded.tagging import word_list

__all__ = [
    "EXTRACTOR",
    "REPORTER",
    "EmbeddedAnswerer",
    "Period",
    "QuestionAnalysis",
    "embedded_models",
    "encoder_of",
    "encoder_of_index",
    "extract_unit",
    "in_conversation",
    "periods",
    "rate",
    "summarize",
    "word_list",
    "write_reports",
]  # fmt: skip
