"""Filters in every method: answers, contexts and citations contain nothing outside the filter."""

import pytest

from graphrag_assets.query import METHODS, Filter, GraphRAG

QUESTION = "What did the Great Eastern and Cyrus Field do?"
BATCH = "1-beginnings"


@pytest.fixture(scope="module")
def rag(sample_index) -> GraphRAG:
    return GraphRAG(sample_index.root / "index")


@pytest.mark.parametrize("method", [*METHODS, "ask"])
def test_a_batch_alone_is_searched_and_cited(rag: GraphRAG, method: str) -> None:
    stream = rag.stream(method, QUESTION, batches=[BATCH])
    answer = stream.wait()
    assert all((citation.source or "").startswith(f"{BATCH}/") for citation in answer.citations)
    if answer.method != "global":  # which has no report about these two alone
        assert answer.citations
    units = set(rag.sql("SELECT human_readable_id FROM text_units WHERE batch = $b", {"b": BATCH}).to_series())
    for name, frame in answer.context.items():
        assert frame.height > 0
        if name == "sources":
            assert set(frame["human_readable_id"]) <= units


def test_a_cited_entity_leads_to_passages_inside_of_the_filter_only(rag: GraphRAG) -> None:
    everywhere = rag.local("What was the Great Eastern?")
    inside = rag.local("What was the Great Eastern?", filter=Filter(batches=BATCH))
    assert len({(citation.source or "").split("/")[0] for citation in everywhere.citations}) > 1
    assert {(citation.source or "").split("/")[0] for citation in inside.citations} == {BATCH}


def test_metadata_and_types_filter_too(rag: GraphRAG) -> None:
    answer = rag.basic("What was measured?", metadata={"topic": "standards"})
    topics = rag.sql(
        "SELECT DISTINCT raw_data::VARCHAR AS raw FROM documents WHERE id IN (SELECT unnest($ids))",
        {"ids": answer.context["sources"]["document_id"].to_list()},
    )
    assert all("standards" in raw for raw in topics["raw"])
    people = rag.local(QUESTION, entity_types=["PERSON"]).context["entities"]
    assert set(people["type"]) == {"PERSON"}
