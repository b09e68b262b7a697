"""The embedded default on the sample corpus compared with ground truth."""

import json
from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG

TRUTH = json.loads((Path(__file__).parent / "ground_truth.json").read_text(encoding="utf-8"))


def test_every_report_has_a_title_a_rating_and_citations_that_resolve(sample_index):
    assert sample_index.sql("SELECT count(*) FROM community_reports WHERE title = '' OR rank NOT BETWEEN 0 AND 10") == [
        (0,)
    ]
    assert sample_index.sql("SELECT count(*) FROM citations WHERE cited_id IS NULL") == [(0,)]
    large = "SELECT min(len(findings)), max(len(findings)) FROM community_reports WHERE size >= 10"
    fewest, most = sample_index.sql(large)[0]
    assert 5 <= fewest <= most <= 10


def answered(rag: GraphRAG, method: str, item: dict) -> bool:
    answer = " ".join(rag.search(method, item["question"]).answer.split())
    return all(expected.lower() in answer.lower() for expected in item["answer_contains"])


def in_context(rag: GraphRAG, item: dict) -> bool:
    text = " ".join(rag.context("local", item["question"]).text.split())
    return all(expected.lower() in text.lower() for expected in item["answer_contains"])


@pytest.mark.extended
def test_local_search_finds_and_answers_facts_of_the_corpus(sample_index):
    rag = GraphRAG(sample_index.root / "index")
    facts = [item for item in TRUTH if item["kind"] == "fact"]
    found = [item["question"] for item in facts if in_context(rag, item)]
    right = [item["question"] for item in facts if answered(rag, "local", item)]
    assert len(found) >= 0.9 * len(facts), [i["question"] for i in facts if i["question"] not in found]
    assert len(right) >= 0.6 * len(facts), [i["question"] for i in facts if i["question"] not in right]


def test_the_context_of_local_search_joins_documents_for_questions_over_several(sample_index):
    rag = GraphRAG(sample_index.root / "index")
    hops = [item for item in TRUTH if item["kind"] == "multi_hop"]
    found = [item["question"] for item in hops if in_context(rag, item)]
    assert len(found) >= 0.8 * len(hops), [i["question"] for i in hops if i["question"] not in found]
