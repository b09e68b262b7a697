"""Reranking: the best passages of a ranking in the order of GRAPHRAG_RERANK_MODEL, if it is set."""

from collections.abc import Sequence
from typing import Any

from graphrag_assets.query.fetch import source_passages
from graphrag_assets.query.search import Search

RERANKED = 50
"""Text units of a ranking that the model reads."""


async def reranked(search: Search[Any], units: Sequence[int]) -> list[int]:
    """The text units with the best of the first 50 before the others; if the request fails, in their order."""
    if search.reranker is None or len(units) < 2:
        return list(units)
    passages = await search.in_thread(source_passages, search.reader, list(units[:RERANKED]), search.scope)
    lost = "the order of the passages by the reranking model"
    found = await search.optional("rerank", lost, search.reranker.arerank(search.question.text, passages))
    return list(dict.fromkeys([*(passages[place].number for place in (found.order if found else ())), *units]))
