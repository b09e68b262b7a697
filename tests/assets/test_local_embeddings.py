"""Indexing and queries with a local embedding model."""

import pytest

from graphrag_assets.embedded import semantic
from graphrag_assets.errors import SettingsError
from graphrag_assets.query import GraphRAG
from tests.assets.test_language_models import BATCHES, use
from tests.openai_server import running

MODEL = semantic.INDEX_MODEL
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


@pytest.mark.extended
def test_index_of_the_packaged_model_is_queried_without_a_setting(packaged, monkeypatch):
    assert models(packaged) == {(MODEL, 384)}
    assert ("embedding_model", MODEL) in packaged.sql("SELECT name, value FROM operations.index_settings")
    for setting in ("onnx:bge-small", "", "openai/another"):
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", setting)
        found = GraphRAG().context("basic", "Which scientist built a measuring device?", k=1)
        assert "galvanometer" in found.frames["sources"]["text"].item()


def test_missing_model_stops_indexing_before_any_request(documents, monkeypatch):
    with running() as server:
        use(monkeypatch, server)
        monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:minilm")
        with pytest.raises(SettingsError, match="=onnx:minilm: the model that runs on this machine is onnx:bge-small"):
            documents.register()
        assert server.requests == []
