"""Basic search: the text units that match the question best, in order of similarity."""

import time
from dataclasses import replace

from pydantic.dataclasses import dataclass

from graphrag_assets.query.context import Context, fill
from graphrag_assets.query.fetch import sources
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.local import SOURCES
from graphrag_assets.query.option_types import Count, Options, PositiveCount
from graphrag_assets.query.results import Answer
from graphrag_assets.query.retrieval import Question, search_texts
from graphrag_assets.query.search import CommonOptions, Search, SearchMethod
from graphrag_assets.store.publication_reader import Reader


@dataclass(frozen=True, kw_only=True)
class BasicOptions(Options):
    """Options of a basic context.

    Args:
        k: maximum number of text units.
        max_context_tokens: maximum number of tokens of the context.
    """

    k: Count = 10
    max_context_tokens: PositiveCount = 12_000


@dataclass(frozen=True, kw_only=True)
class BasicSearchOptions(CommonOptions, BasicOptions):
    """All options of `rag.basic`."""


async def build_context(search: Search[BasicSearchOptions]) -> Context:
    """The context of a basic search, within the tokens that the history leaves."""
    options = replace(search.options, max_context_tokens=search.room(search.options.max_context_tokens))
    await search.embed(search.question)
    return search.add_context(
        await search.in_thread(basic_context, search.reader, search.question, options, search.scope)
    )


async def answer(search: Search[BasicSearchOptions]) -> Answer:
    """An answer from the most similar text units alone, without the graph."""
    return await search.respond(await build_context(search))


METHOD = SearchMethod("basic", BasicSearchOptions, build_context, answer)

_DEFAULTS = BasicOptions()


def basic_context(
    reader: Reader, question: Question, options: BasicOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> Context:
    """The context of a basic search: one section Sources, found by BM25 and vectors."""
    started = time.perf_counter()
    units = search_texts(reader, "text_unit", question, options.k, scope)
    section = fill(SOURCES.with_dates(reader), sources(reader, units, scope), options.max_context_tokens)
    return Context("basic", question.text, (section,), time.perf_counter() - started)
