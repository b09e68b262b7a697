"""Multi-hop questions: the share of gold passages that local search finds."""

import pytest

from benchmarks.retrieval_quality import METHODS, recall
from graphrag_assets.query import GraphRAG

LEAST = 92  # of recall@5, and of questions with all gold passages among the first eight; BM25 has 80 and 71


@pytest.mark.long
def test_local_search_finds_more_passages_than_words(hotpotqa) -> None:
    collection, index = hotpotqa("titled")
    first, complete = recall(collection, GraphRAG(index), METHODS["local"])
    assert 100 * first.mean() >= LEAST
    assert 100 * complete.mean() >= LEAST
