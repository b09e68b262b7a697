"""Run by test_langchain.py in an environment of its own: LangChain's standard tests, and those of our documents."""

import os
from typing import Any

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests

from graphrag_assets.errors import InvalidOption
from graphrag_assets.integrations.langchain import GraphRAGRetriever
from graphrag_assets.query import Filter, GraphRAG
from tests.test_docs import blocks

INDEX = os.environ["GRAPHRAG_DATA"] + "/index"
QUESTION = "Who commanded the Great Eastern in 1865?"


class TestGraphRAGRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[GraphRAGRetriever]:
        return GraphRAGRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"index": GraphRAG(INDEX)}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


def test_a_document_says_where_it_comes_from() -> None:
    with GraphRAG(INDEX) as rag:
        documents = GraphRAGRetriever(index=rag, k=4, method="text").invoke(QUESTION)
        rows = rag.retrieve(QUESTION, k=4, method="text").to_dicts()
        assert [document.id for document in documents] == [row["id"] for row in rows]
        for document, row in zip(documents, rows, strict=True):
            assert document.page_content == row["text"]
            meta = document.metadata
            assert (meta["title"], meta["source"]) == (row["document"], row["source"])
            assert meta["score"] == pytest.approx(row["score"])  # sums of parallel threads differ in the last digit
            query = "SELECT text[$start + 1 : $end] AS passage FROM documents WHERE id = $id"
            given = {"id": meta["document_id"], "start": meta["start_char"], "end": meta["end_char"]}
            assert rag.sql(query, given)["passage"].to_list() == [document.page_content]
            query = "SELECT list_sort(entity_ids) AS ids FROM text_units WHERE id = $id"
            (ids,) = rag.sql(query, {"id": meta["text_unit_id"]})["ids"]
            named = rag.sql("SELECT id FROM entities WHERE title IN (SELECT unnest($t))", {"t": meta["entities"]})
            assert sorted(named["id"]) == ids.to_list()


@pytest.mark.asyncio
async def test_filters_hold_for_all_questions_or_for_one() -> None:
    batch = "1-beginnings"
    retriever = GraphRAGRetriever(index=GraphRAG(INDEX), filter=Filter(batches=[batch]))
    found = await retriever.ainvoke(QUESTION)
    assert {document.metadata["source"].partition("/")[0] for document in found} == {batch}
    found = await GraphRAGRetriever(index=GraphRAG(INDEX)).ainvoke(QUESTION, batches=[batch])
    assert {document.metadata["source"].partition("/")[0] for document in found} == {batch}
    with pytest.raises(InvalidOption, match="Give batches inside the filter"):
        await retriever.ainvoke(QUESTION, batches=["4-great-eastern"])


def test_the_guides_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = (block for block in blocks("docs/exchange.md", "python") if "integrations.langchain" in block)
    exec(compile(code, "docs/exchange.md", "exec"), {})
    assert "The cable lost: the expedition of 1865 0" in capsys.readouterr().out
