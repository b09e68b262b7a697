"""Reranking: the best passages of a ranking in the order of GRAPHRAG_RERANK_MODEL, if it is set."""

from collections.abc import Sequence
from typing import Any

from graphrag_assets.answering import Passage
from graphrag_assets.query.fetch import sources
from graphrag_assets.query.results import Failure
from graphrag_assets.query.search import Search

RERANKED = 50
"""Text units of a ranking that the model reads."""


async def reranked(search: Search[Any], units: Sequence[int]) -> list[int]:
    """The text units with the best of the first 50 before the others; if the request fails, in their order."""
    if search.rag.reranker is None or len(units) < 2:
        return list(units)
    rows = await search.in_thread(sources, search.reader, list(units[:RERANKED]), search.scope)
    columns = rows.select("human_readable_id", "context", "text").iter_rows()
    passages = [Passage("Sources", number, context or "", text) for number, context, text in columns]
    try:
        found = await search.rag.reranker.arerank(search.question.text, passages)
    except Exception as error:  # the search continues with the ranking
        search.errors.append(Failure("rerank", "the order of the passages by the reranking model", str(error)))
        return list(units)
    search.add_usage("rerank", found.usage)
    return list(dict.fromkeys([*(passages[place].number for place in found.order), *units]))
