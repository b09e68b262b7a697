"""Indexing and queries with a local embedding model."""

import pytest

from graphrag_assets.embedded import semantic
from graphrag_assets.errors import QueryError, SettingsError
from graphrag_assets.query import GraphRAG
from tests.assets.test_language_models import BATCHES, contents, use
from tests.openai_server import running

MODEL = "onnx:bge-small#5f8ee95192c0"
QUESTION = "Who commanded the Great Eastern?"


@pytest.fixture
def documents(project):
    for path, text in BATCHES.items():
        project.write(path, text)
    return project


@pytest.fixture
def packaged(start_with):
    """The documents, indexed with the vectors of the packaged model."""
    return start_with(BATCHES, embedding_model="onnx:bge-small")


def models(project) -> set[tuple]:
    return set(project.sql("SELECT DISTINCT model, len(vector) FROM embeddings"))


@pytest.mark.long
def test_index_of_the_packaged_model_is_queried_without_a_setting(packaged, monkeypatch):
    assert models(packaged) == {(MODEL, 384)}
    assert ("embedding_model", MODEL) in packaged.sql("SELECT name, value FROM operations.index_settings")
    for setting in ("onnx:bge-small", "", "openai/another"):
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", setting)
        found = GraphRAG().context("basic", "Which scientist built a measuring device?", k=1)
        assert "galvanometer" in found.frames["sources"]["text"].item()


@pytest.mark.extended
def test_second_run_embeds_nothing_and_writes_no_row(packaged):
    before = contents(packaged)
    packaged.index_all()
    assert contents(packaged) == before
    written = packaged.index.working.read(
        "SELECT inserted + deleted AS n FROM index_runs WHERE stage = 'embed_texts' ORDER BY committed_at"
    )
    assert written["n"].to_list()[1:] == [0]


@pytest.mark.long
def test_index_without_vectors_is_queried_without_them_whatever_is_set(start_with, monkeypatch):
    documents = start_with(BATCHES)
    assert models(documents) == set()
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:bge-small")
    assert GraphRAG().basic(QUESTION).citations
    documents.run_global()
    assert models(documents) == {(MODEL, 384)}


@pytest.mark.long
def test_vectors_go_when_the_model_is_unset_and_the_asset_says_why(packaged, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "")
    run = packaged.run_global()
    assert run.success
    (made,) = run.asset_materializations_for_node("embed_texts")
    assert made.metadata["dagster/row_count"].value == 0
    assert "GRAPHRAG_EMBEDDING_MODEL is not set" in made.metadata["note"].value
    assert models(packaged) == set()
    for method in ("basic", "local", "global", "drift", "lazy"):
        assert GraphRAG().search(method, QUESTION).answer
    assert packaged.run_global().success


@pytest.mark.long
def test_an_index_of_another_model_is_embedded_again_with_a_warning(packaged, monkeypatch, caplog):
    with monkeypatch.context() as later, caplog.at_level("WARNING"):
        later.setattr(semantic, "INDEX_MODEL", "onnx:bge-small#1")
        packaged.run_global()
    assert models(packaged) == {("onnx:bge-small#1", 384)}
    assert any(MODEL in record.message and "onnx:bge-small#1" in record.message for record in caplog.records)
    with pytest.raises(QueryError, match="The index was embedded with onnx:bge-small#1"):
        GraphRAG().basic(QUESTION)


def test_missing_model_stops_indexing_before_any_request(documents, monkeypatch):
    with running() as server:
        use(monkeypatch, server)
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:minilm")
        with pytest.raises(SettingsError, match="=onnx:minilm: the model that runs on this machine is onnx:bge-small"):
            documents.register()
        assert server.requests == []


@pytest.mark.long
def test_chat_model_of_a_server_works_with_local_vectors(documents, monkeypatch):
    with running() as server:
        use(monkeypatch, server)
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:bge-small")
        documents.index_all()
        assert server.embeddings == []
        before = len(server.requests)
        assert GraphRAG().local(QUESTION).model == "openai/test-chat"
        assert len(server.requests) == before + 1
    assert models(documents) == {(MODEL, 384)}
