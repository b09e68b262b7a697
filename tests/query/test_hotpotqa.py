"""Multi-hop questions: the share of gold passages that local search finds."""

from pathlib import Path

import pytest

from benchmarks.retrieval_quality import METHODS, collections, recall
from graphrag_assets.query import GraphRAG
from tests.conftest import SHARED_DATA, index_once

LEAST = 92  # of recall@5, and of questions with all gold passages among the first eight; BM25 has 80 and 71


@pytest.mark.long
def test_local_search_finds_more_passages_than_words(shared_folder: Path, tmp_path: Path) -> None:
    if not (folder := SHARED_DATA / "hotpotqa-100").is_dir():
        pytest.skip("needs ../shared/data/hotpotqa-100")
    collection = next(each for each in collections(folder) if each.name == "titled")
    for file, text in collection.files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    index = index_once(shared_folder / "hotpotqa-titled", tmp_path) / "index"
    first, complete = recall(collection, GraphRAG(index), METHODS["local"])
    assert 100 * first.mean() >= LEAST
    assert 100 * complete.mean() >= LEAST
