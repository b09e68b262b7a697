"""Basic search: the text units that fit the question best, in order of similarity."""

import time
from dataclasses import dataclass

from graphrag_assets.query.context import Context, fill
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.local import SOURCES
from graphrag_assets.query.options import check_whole
from graphrag_assets.query.retrieval import Question, search
from graphrag_assets.query.rows import sources
from graphrag_assets.store.publication_reader import Reader


@dataclass(frozen=True, slots=True)
class BasicOptions:
    """`k` text units at most, within the token limit."""

    k: int = 10
    max_context_tokens: int = 12_000

    def __post_init__(self) -> None:
        check_whole(self, "k")
        check_whole(self, "max_context_tokens", least=1)


_DEFAULTS = BasicOptions()


def basic_context(
    reader: Reader, question: Question, options: BasicOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> Context:
    """The context of a basic search: Sources only, found by BM25 and vectors."""
    started = time.perf_counter()
    units = search(reader, "text_unit", question, options.k, scope)
    section = fill(SOURCES, sources(reader, units, scope), options.max_context_tokens)
    return Context("basic", question.text, (section,), time.perf_counter() - started)
