"""Reranking: the best passages of a ranking in the order of GRAPHRAG_RERANK_MODEL, if it is set."""

from collections.abc import Sequence
from typing import Any

from graphrag_assets.query.fetch import source_passages
from graphrag_assets.query.results import Failure
from graphrag_assets.query.search import Search

RERANKED = 50
"""Text units of a ranking that the model reads."""


async def reranked(search: Search[Any], units: Sequence[int]) -> list[int]:
    """The text units with the best of the first 50 before the others; if the request fails, in their order."""
    if search.rag.reranker is None or len(units) < 2:
        return list(units)
    passages = await search.in_thread(source_passages, search.reader, list(units[:RERANKED]), search.scope)
    try:
        found = await search.rag.reranker.arerank(search.question.text, passages)
    except Exception as error:  # the search continues with the ranking
        search.errors.append(Failure("rerank", "the order of the passages by the reranking model", str(error)))
        return list(units)
    search.add_usage("rerank", found.usage)
    return list(dict.fromkeys([*(passages[place].number for place in found.order), *units]))
