"""Basic search: the text units that match the question best, in order of similarity."""

from pydantic.dataclasses import dataclass

from graphrag_assets.query.ask import Ask
from graphrag_assets.query.context import Context, fill
from graphrag_assets.query.fetch import sources
from graphrag_assets.query.local import SOURCES
from graphrag_assets.query.options import CommonOptions, Count
from graphrag_assets.query.question import Question
from graphrag_assets.query.respond import respond
from graphrag_assets.query.results import Answer
from graphrag_assets.query.retrieval import search_texts
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader


@dataclass(frozen=True, kw_only=True)
class BasicOptions(CommonOptions):
    """All options of `rag.basic`.

    Args:
        k: maximum number of text units.
    """

    k: Count = 10


async def build_context(ask: Ask[BasicOptions]) -> Context:
    """Return the context of a basic search."""
    await ask.embed(ask.question)
    return ask.add_context(await ask.in_thread(basic_context, ask.reader, ask.question, ask.options, ask.scope))


async def answer(ask: Ask[BasicOptions]) -> Answer:
    """Return an answer from the most similar text units alone, without the graph."""
    return await respond(ask, await build_context(ask))


_DEFAULTS = BasicOptions()


def basic_context(
    reader: Reader, question: Question, options: BasicOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> Context:
    """Return the context of a basic search: the text units that match best by BM25 and vectors."""
    units = search_texts(reader, "text_unit", question, options.k, scope)
    section = fill(SOURCES.with_dates(reader), sources(reader, units, scope), options.max_context_tokens)
    return Context("basic", question.text, (section,))
